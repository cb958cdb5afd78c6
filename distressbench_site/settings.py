"""All settings; every value that differs between installations comes from the environment."""

from pathlib import Path

from csp.constants import NONE, SELF

from distressbench_site.env import (
    env_bool,
    env_choice,
    env_contacts,
    env_database,
    env_int,
    env_list,
    env_secret,
    env_str,
    load_dotenv,
)

BASE_DIR = Path(__file__).resolve().parent.parent
load_dotenv(BASE_DIR / ".env")

# Everything that the running program writes: database, secret key, collected static files.
DATA_DIR = Path(env_str("DISTRESSBENCH_DATA") or BASE_DIR / "data").resolve()

SECRET_KEY = env_secret("SECRET_KEY", DATA_DIR / "secret-key")
DEBUG = env_bool("DEBUG", False)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "distressbench_site",
    "distressbench_site.accounts",
    "corpus",
    "annotation",
    "scoring",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.mfa",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "distressbench_site.middleware.BusyDatabaseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "distressbench_site.middleware.SignInRequiredMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "distressbench_site.urls"
WSGI_APPLICATION = "distressbench_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "distressbench_site.context.page_frame",
            ],
        },
    },
]

DATABASES = {"default": env_database("DATABASE_URL", DATA_DIR / "distressbench.sqlite3")}

# People and sign-in ------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
# The address is unique whatever its case, by a constraint that the check does not see.
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
    "distressbench_site.accounts.backends.RoleBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "distressbench_site.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_FORMS = {"signup": "distressbench_site.accounts.forms.InvitedSignupForm"}
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
# The invitation went to the address, so opening its link has verified it.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[DistressBench] "
# A team may sign in from one address; failed sign-ins stay limited more strictly.
_SIGN_INS = env_int("SIGN_INS_PER_MINUTE", 60, minimum=1)
ACCOUNT_RATE_LIMITS = {"login": f"{_SIGN_INS}/m/ip"}
# Without it nobody could add a second step, as no address is marked as verified.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
EMAIL_BACKEND = env_str("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend")
EMAIL_HOST = env_str("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25, minimum=1)
EMAIL_HOST_USER = env_str("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_str("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", False)
DEFAULT_FROM_EMAIL = env_str("DEFAULT_FROM_EMAIL", "distressbench@localhost")

# Transport and browser ---------------------------------------------------------------------

HTTPS = env_bool("HTTPS", False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
if env_bool("BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    # Limits of sign-ins count the person's address, not the proxy's.
    ALLAUTH_TRUSTED_PROXY_COUNT = 1
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "distressbench_site.staticfiles.StaticStorage"},
}
WHITENOISE_USE_FINDERS = True

LANGUAGE_CODE = "en-gb"
TIME_ZONE = env_str("TIME_ZONE", "UTC")
USE_I18N = True
USE_TZ = True

# Work in the background --------------------------------------------------------------------

CELERY_BROKER_URL = env_str("CELERY_BROKER_URL", "memory://")
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# Support for the people who read this material -----------------------------------------------

_SUPPORT_CONTACTS = [
    {"name": "United States and Canada", "detail": "988, call or text"},
    {"name": "United Kingdom and Ireland", "detail": "Samaritans, 116 123"},
    {"name": "Australia", "detail": "Lifeline, 13 11 14"},
    {"name": "New Zealand", "detail": "1737, call or text"},
    {"name": "Elsewhere", "detail": "findahelpline.com, or your local emergency number"},
]
SUPPORT_CONTACTS = env_contacts("SUPPORT_CONTACTS", _SUPPORT_CONTACTS)
LOCAL_CONTACT = env_str("LOCAL_CONTACT")

# Labelling -----------------------------------------------------------------------------------

# An untouched claim frees its slot after this time; after the first answer it is held longer.
LEASE_MINUTES_UNTOUCHED = env_int("LEASE_MINUTES_UNTOUCHED", 60, minimum=1)
LEASE_HOURS_STARTED = env_int("LEASE_HOURS_STARTED", 72, minimum=1)

_LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env_choice("LOG_LEVEL", "INFO", _LOG_LEVELS)},
}
