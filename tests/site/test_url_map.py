"""Every URL of the site: who may come, who may not, and which methods it knows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from annotation import services as annotation_services
from annotation.models import Annotator
from distressbench_site.accounts import services as account_services
from distressbench_site.accounts.models import User
from distressbench_site.accounts.roles import ADMIN, CLINICIAN, RESEARCHER, ROLES, SENIOR_CLINICIAN
from scoring import services as scoring_services
from tests import factories
from tests.scoring import making

pytestmark = pytest.mark.django_db

LABELLERS = (CLINICIAN, SENIOR_CLINICIAN)
RESEARCHERS = (RESEARCHER, ADMIN)
ADMINS = (ADMIN,)
EVERYBODY = (*ROLES, "nobody")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# No row has these numbers; the second is more than any column holds.
NEVER = (987_654_321, 10**30)


def make_person(role: str) -> User:
    """Make a person who can be signed in by force; a password would only take time."""
    user = User.objects.create(email=f"{role.replace(' ', '-')}-{factories.number()}@example.org")
    if role in ROLES:
        account_services.set_roles(user=user, roles=[role], actor=None)
    return user


# Makers of what a URL is about; each gets the person whose it is.


def _round(**given: Any) -> Any:
    return factories.make_round(created_by=make_person(RESEARCHER), **given)


def nothing(owner: User) -> list[Any]:
    return []


def a_person(owner: User) -> list[Any]:
    return [make_person(CLINICIAN).pk]


def a_closed_person(owner: User) -> list[Any]:
    person = make_person(CLINICIAN)
    User.objects.filter(pk=person.pk).update(is_active=False)
    return [person.pk]


def _invited() -> tuple[Any, str]:
    email = f"invited-{factories.number()}@example.org"
    return account_services.invite_person(
        email=email, roles=[CLINICIAN], invited_by=make_person(ADMIN)
    )


def an_invitation(owner: User) -> list[Any]:
    return [_invited()[0].pk]


def a_token(owner: User) -> list[Any]:
    return [_invited()[1]]


def a_collection(owner: User) -> list[Any]:
    return [factories.make_conversation().collection.slug]


def a_conversation(owner: User) -> list[Any]:
    conversation = factories.make_reply().conversation
    return [conversation.collection.slug, conversation.pk]


def a_draft_round(owner: User) -> list[Any]:
    return [_round(annotators=[factories.make_annotator()], status="draft").pk]


def a_round(owner: User) -> list[Any]:
    return [_round(annotators=[factories.make_annotator()]).pk]


def a_round_and_its_member(owner: User) -> list[Any]:
    annotator = factories.make_annotator()
    return [_round(annotators=[annotator]).pk, annotator.pk]


def my_round(owner: User) -> list[Any]:
    return [_round(annotators=[annotation_services.annotator_for(user=owner)]).pk]


def _assignment(owner: User, *, submit: bool = False) -> Any:
    annotator = annotation_services.annotator_for(user=owner)
    made = _round(annotators=[annotator])
    return factories.label_item(made.items.get(), annotator, submit=submit)


def my_assignment(owner: User) -> list[Any]:
    return [_assignment(owner).pk]


def my_submitted_assignment(owner: User) -> list[Any]:
    return [_assignment(owner, submit=True).pk]


def my_criterion(owner: User) -> list[Any]:
    assignment = _assignment(owner)
    return [assignment.pk, assignment.round_item.asked.first().criterion_id]


def a_judge(owner: User) -> list[Any]:
    return [making.make_judge().pk]


def a_calibration(owner: User) -> list[Any]:
    judge = making.make_judge()
    collection = making.make_judged_collection(judge, conversations=2)
    return [making.make_calibration(judge, collection).pk]


def a_run(owner: User) -> list[Any]:
    return [making.make_run().pk]


def results(owner: User) -> list[Any]:
    judge = making.make_judge()
    collection = making.make_judged_collection(judge, conversations=2)
    scoring_services.refresh_scores(collection=collection, judge=judge)
    return [collection.slug]


@dataclass(frozen=True)
class Page:
    """What one URL promises."""

    roles: tuple[str, ...]
    methods: str
    make: Callable[[User], list[Any]] = nothing
    # Somebody else with the same role must not even learn that it exists.
    own: bool = False
    # Anonymous people may come.
    public: bool = False


PAGES: dict[str, Page] = {
    "home": Page(EVERYBODY, "GET"),
    "method": Page(EVERYBODY, "GET"),
    "healthz": Page(EVERYBODY, "GET", public=True),
    "person-list": Page(ADMINS, "GET"),
    "person-invite": Page(ADMINS, "GET POST"),
    "person-roles": Page(ADMINS, "GET POST", a_person),
    "person-deactivate": Page(ADMINS, "GET POST", a_person),
    "person-reactivate": Page(ADMINS, "POST", a_closed_person),
    "invitation-withdraw": Page(ADMINS, "POST", an_invitation),
    "invitation-accept": Page(EVERYBODY, "GET POST", a_token, public=True),
    "audit-list": Page(ADMINS, "GET"),
    "collection-list": Page(RESEARCHERS, "GET"),
    "collection-detail": Page(RESEARCHERS, "GET", a_collection),
    "conversation-detail": Page(RESEARCHERS, "GET", a_conversation),
    "labelling-home": Page(LABELLERS, "GET"),
    "labelling-round": Page(LABELLERS, "GET", my_round, own=True),
    "labelling-next": Page(LABELLERS, "POST", my_round, own=True),
    "assignment-detail": Page(LABELLERS, "GET", my_assignment, own=True),
    "label-save": Page(LABELLERS, "POST", my_criterion, own=True),
    "assignment-submit": Page(LABELLERS, "POST", my_assignment, own=True),
    "assignment-skip": Page(LABELLERS, "POST", my_assignment, own=True),
    "assignment-decline": Page(LABELLERS, "POST", my_assignment, own=True),
    "assignment-reopen": Page(LABELLERS, "POST", my_submitted_assignment, own=True),
    "round-list": Page(RESEARCHERS, "GET"),
    "round-create": Page(RESEARCHERS, "GET POST"),
    "round-detail": Page(RESEARCHERS, "GET", a_round),
    "round-open": Page(RESEARCHERS, "POST", a_draft_round),
    "round-pause": Page(RESEARCHERS, "POST", a_round),
    "round-close": Page(RESEARCHERS, "POST", a_round),
    "round-overlap": Page(RESEARCHERS, "POST", a_round),
    "round-member-add": Page(RESEARCHERS, "POST", a_round),
    "round-member-remove": Page(RESEARCHERS, "POST", a_round_and_its_member),
    "round-agreement": Page(RESEARCHERS, "GET", a_round),
    "round-labels-csv": Page(RESEARCHERS, "GET", a_round),
    "judge-list": Page(RESEARCHERS, "GET"),
    "baseline-train": Page(RESEARCHERS, "GET POST"),
    "judge-detail": Page(RESEARCHERS, "GET", a_judge),
    "calibration-create": Page(RESEARCHERS, "GET POST", a_judge),
    "calibration-detail": Page(RESEARCHERS, "GET", a_calibration),
    "calibration-decide": Page(RESEARCHERS, "POST", a_calibration),
    "run-list": Page(RESEARCHERS, "GET"),
    "run-create": Page(RESEARCHERS, "GET POST"),
    "run-detail": Page(RESEARCHERS, "GET", a_run),
    "run-pause": Page(RESEARCHERS, "POST", a_run),
    "run-resume": Page(RESEARCHERS, "POST", a_run),
    "run-cancel": Page(RESEARCHERS, "POST", a_run),
    "run-retry": Page(RESEARCHERS, "POST", a_run),
    "result-list": Page(RESEARCHERS, "GET"),
    "leaderboard": Page(RESEARCHERS, "GET", results),
    "leaderboard-csv": Page(RESEARCHERS, "GET", results),
}

# Of django-allauth: pages before the door, and pages of one's own account behind it.
DOOR: dict[str, list[Any]] = {
    "account_login": [],
    "account_logout": [],
    "account_inactive": [],
    "account_signup": [],
    "account_email_verification_sent": [],
    "account_reset_password": [],
    "account_reset_password_done": [],
    "account_reset_password_from_key": ["1", "made-up"],
    "account_reset_password_from_key_done": [],
    "account_confirm_login_code": [],
    "account_confirm_email": ["made-up"],
    "mfa_authenticate": [],
}
OWN_ACCOUNT = (
    "account_reauthenticate",
    "account_request_reauthentication_code",
    "account_confirm_reauthentication_code",
    "account_email",
    "account_change_password",
    "account_set_password",
    "mfa_index",
    "mfa_reauthenticate",
    "mfa_activate_totp",
    "mfa_deactivate_totp",
    "mfa_view_recovery_codes",
    "mfa_generate_recovery_codes",
    "mfa_download_recovery_codes",
)

# Of the admin site, which only admins get into.
ADMIN_MODELS = {
    "accounts": "user invitation auditevent",
    "corpus": "collection dimension subcategory conversation criterion rubric respondent reply",
    "annotation": "round annotator",
    "scoring": (
        "judge run runitem call verdict split splitmember splitopening calibration"
        " calibrationdecision scoreset"
    ),
}
ADMIN_VIEWS = ("changelist", "add", "history", "delete", "change")
ADMIN_PAGES: dict[str, dict[str, Any]] = {
    "index": {},
    "logout": {},
    "password_change": {},
    "password_change_done": {},
    "autocomplete": {},
    "jsi18n": {},
    "view_on_site": {"content_type_id": "1", "object_id": "1"},
    "app_list": {"app_label": "accounts"},
    **{
        f"{app}_{model}_{view}": {} if view in {"changelist", "add"} else {"object_id": "1"}
        for app, models in ADMIN_MODELS.items()
        for model in models.split()
        for view in ADMIN_VIEWS
    },
}
# Nameless rests of the admin site: an old form of the change page, and everything unknown.
ADMIN_REST = {
    *(
        f"admin/{app}/{model}/<path:object_id>/"
        for app, models in ADMIN_MODELS.items()
        for model in models.split()
    ),
    "admin/(?P<url>.*)$",
}


def _walk(
    resolver: URLResolver, path: str = "", spaces: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    for entry in resolver.url_patterns:
        here = path + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield ":".join([*spaces, entry.name or ""]), here
        else:
            yield from _walk(entry, here, (*spaces, *filter(None, [entry.namespace])))


def test_every_url_of_the_site_is_listed_here_and_nothing_else():
    found = set(_walk(get_resolver()))
    nameless = {path for name, path in found if name.endswith(":") or not name}
    names = [name for name, _ in found if name and not name.endswith(":")]

    admin = {f"admin:{name}" for name in ADMIN_PAGES} | {"admin:login"}
    assert nameless == ADMIN_REST
    assert sorted(names) == sorted({*PAGES, *DOOR, *OWN_ACCOUNT, *admin})


@pytest.fixture
def client() -> Client:
    cache.clear()
    return Client()


def ask(client: Client, method: str, url: str, **more: Any) -> Any:
    return client.generic(method, url, content_type="application/x-www-form-urlencoded", **more)


def url_of(name: str, owner: User | None = None) -> str:
    page = PAGES[name]
    role = next((role for role in page.roles if role in ROLES), CLINICIAN)
    return reverse(name, args=page.make(owner or make_person(role)))


@pytest.mark.parametrize("name", PAGES)
def test_anonymous_people_are_asked_to_sign_in(client, name):
    url = url_of(name)
    for method in PAGES[name].methods.split():
        answer = ask(client, method, url)
        if PAGES[name].public:
            assert answer.status_code in {200, 302}
            assert not answer.get("Location", "").startswith(reverse("account_login"))
        else:
            assert answer.status_code == 302
            assert answer["Location"] == f"{reverse('account_login')}?next={url}"


@pytest.mark.parametrize("name", [name for name in PAGES if not PAGES[name].public])
def test_a_fragment_for_anonymous_people_is_never_a_page(client, name):
    url = url_of(name)
    for method in PAGES[name].methods.split():
        answer = ask(client, method, url, headers={"HX-Request": "true"})
        if name == "label-save":
            assert answer.status_code == 401
        else:
            assert answer["HX-Redirect"].startswith(reverse("account_login"))
        assert b"<" not in answer.content


@pytest.mark.parametrize("name", PAGES)
def test_people_with_the_role_come_in(client, name):
    page = PAGES[name]
    for role in page.roles:
        for method in page.methods.split():
            owner = make_person(role)
            url = url_of(name, owner)
            client.force_login(owner)
            answer = ask(client, method, url)
            assert answer.status_code in {200, 302, 422}, f"{method} as {role}"
            if answer.status_code == 302:
                assert not answer["Location"].startswith(reverse("account_login"))
            if method == "GET" and name != "home":
                assert answer.status_code == 200
            if hasattr(answer, "streaming_content"):
                b"".join(answer.streaming_content)


@pytest.mark.parametrize("name", PAGES)
def test_people_without_the_role_are_refused(client, name):
    page = PAGES[name]
    url = url_of(name)
    for role in set(EVERYBODY) - set(page.roles):
        client.force_login(make_person(role))
        for method in page.methods.split():
            assert ask(client, method, url).status_code == 403, f"{method} as {role}"


@pytest.mark.parametrize("name", [name for name in PAGES if PAGES[name].own])
def test_what_is_anothers_does_not_exist_for_strangers(client, name):
    page = PAGES[name]
    for role in page.roles:
        url = url_of(name)
        stranger = make_person(role)
        client.force_login(stranger)
        for method in page.methods.split():
            assert ask(client, method, url).status_code == 404, f"{method} as {role}"
        # The same for somebody who labels elsewhere, and so is known as an annotator.
        annotator = annotation_services.annotator_for(user=stranger)
        _round(annotators=[annotator])
        for method in page.methods.split():
            assert ask(client, method, url).status_code == 404, f"{method} as {role}"


@pytest.mark.parametrize("name", [name for name in PAGES if PAGES[name].make is not nothing])
def test_what_does_not_exist_is_not_found(client, name):
    page = PAGES[name]
    owner = make_person(page.roles[0])
    client.force_login(owner)
    args = page.make(owner)
    missing = [
        [*args[:place], other, *args[place + 1 :]]
        for place, value in enumerate(args)
        for other in (NEVER if isinstance(value, int) else ["nowhere"])
    ]
    for wrong in missing:
        place = next(n for n, value in enumerate(wrong) if value != args[n])
        url = reverse(name, args=wrong)
        for method in page.methods.split():
            status = ask(client, method, url).status_code
            # A form about a row within one's own page may say so beside the field instead.
            second_row = place == 1 and method == "POST"
            assert status in ({404, 302, 422} if second_row else {404, *_withdrawn(name)}), url


def _withdrawn(name: str) -> set[int]:
    """Return what else fits: an invitation that is not open any more is told on the list."""
    return {302} if name == "invitation-withdraw" else set()


@pytest.mark.parametrize("name", PAGES)
def test_other_methods_are_not_allowed_and_change_nothing(client, name):
    page = PAGES[name]
    owner = make_person(page.roles[0])
    url = url_of(name, owner)
    client.force_login(owner)
    allowed = set(page.methods.split())
    for method in set(METHODS) - allowed:
        answer = ask(client, method, url)
        assert answer.status_code == 405, method
        assert set(answer["Allow"].replace("HEAD", "").replace(",", " ").split()) == allowed


@pytest.mark.parametrize("name", [name for name in PAGES if "GET" in PAGES[name].methods])
def test_looking_at_a_page_writes_nothing(client, name, django_assert_max_num_queries):
    page = PAGES[name]
    owner = make_person(page.roles[0])
    url = url_of(name, owner)
    client.force_login(owner)
    if page.roles == LABELLERS and not Annotator.objects.filter(user=owner).exists():
        annotation_services.annotator_for(user=owner)
    with django_assert_max_num_queries(60) as queries:
        answer = ask(client, "GET", url)
        if hasattr(answer, "streaming_content"):
            b"".join(answer.streaming_content)
    writing = ("INSERT", "UPDATE", "DELETE")
    assert [q["sql"] for q in queries.captured_queries if q["sql"].startswith(writing)] == []


@pytest.mark.parametrize("name", DOOR)
def test_the_pages_before_the_door_are_open_and_never_fail(client, name):
    url = reverse(name, args=DOOR[name])
    for method in METHODS:
        answer = ask(client, method, url)
        assert answer.status_code in {200, 302, 403, 404, 405}, method
    assert client.get(url).status_code in {200, 302}
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("name", OWN_ACCOUNT)
def test_ones_own_account_is_behind_the_door(client, name):
    url = reverse(name)
    for method in ("GET", "POST"):
        answer = ask(client, method, url)
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("account_login"))
    client.force_login(make_person("nobody"))
    assert client.get(url).status_code in {200, 302, 404}


@pytest.mark.parametrize("name", [*ADMIN_PAGES, "login"])
def test_the_admin_site_lets_only_admins_in(client, name):
    url = reverse(f"admin:{name}", kwargs=ADMIN_PAGES.get(name))
    for method in ("GET", "POST"):
        answer = ask(client, method, url)
        assert answer.status_code == 302, method
        assert answer["Location"].startswith((reverse("admin:login"), reverse("account_login")))

    for role in ("nobody", CLINICIAN, RESEARCHER):
        client.force_login(make_person(role))
        answer = client.get(url, follow=True)
        assert answer.status_code == 403 or answer.request["PATH_INFO"] == "/", role

    client.force_login(make_person(ADMIN))
    assert client.get(url).status_code in {200, 302, 403, 404, 405}


@pytest.mark.parametrize("path", ["admin/corpus/reply/1/", "admin/nowhere/"])
def test_the_rest_of_the_admin_site_is_behind_the_same_door(client, path):
    assert ask(client, "GET", f"/{path}").status_code == 302
    client.force_login(make_person(CLINICIAN))
    assert client.get(f"/{path}", follow=True).status_code == 403
