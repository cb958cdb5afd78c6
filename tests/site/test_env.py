"""Settings from the environment: right values are read, wrong ones are named loudly."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from distressbench_site import env
from tests.program import ROOT, SECRET_KEY

pytestmark = pytest.mark.no_database


@pytest.mark.parametrize("raw", ["1", "true", "YES", " on "])
def test_yes(monkeypatch, raw):
    monkeypatch.setenv("SWITCH", raw)
    assert env.env_bool("SWITCH", False) is True


@pytest.mark.parametrize("raw", ["0", "false", "No", "off", ""])
def test_no(monkeypatch, raw):
    monkeypatch.setenv("SWITCH", raw)
    assert env.env_bool("SWITCH", True) is False


def test_a_switch_that_is_not_set_has_its_default(monkeypatch):
    monkeypatch.delenv("SWITCH", raising=False)
    assert env.env_bool("SWITCH", True) is True


def test_a_switch_that_cannot_be_meant_is_named(monkeypatch):
    monkeypatch.setenv("SWITCH", "ture")
    with pytest.raises(env.EnvError, match="SWITCH must be one of .*'ture'"):
        env.env_bool("SWITCH", False)


def test_whole_numbers(monkeypatch):
    monkeypatch.setenv("NUMBER", "12")
    assert env.env_int("NUMBER", 3) == 12
    monkeypatch.setenv("NUMBER", " ")
    assert env.env_int("NUMBER", 3) == 3


@pytest.mark.parametrize(
    ("raw", "words"), [("many", "whole number"), ("1.5", "whole number"), ("0", "at least 1")]
)
def test_a_number_that_cannot_be_meant_is_named(monkeypatch, raw, words):
    monkeypatch.setenv("NUMBER", raw)
    with pytest.raises(env.EnvError, match=f"NUMBER must be .*{words}"):
        env.env_int("NUMBER", 3, minimum=1)


def test_lists(monkeypatch):
    monkeypatch.setenv("NAMES", "a.example , ,b.example,")
    assert env.env_list("NAMES", []) == ["a.example", "b.example"]


class TestSecret:
    def test_one_is_made_once_for_its_owner_alone(self, monkeypatch, tmp_path):
        monkeypatch.delenv("KEY", raising=False)
        file = tmp_path / "data" / "key"

        first = env.env_secret("KEY", file)

        assert len(first) >= 50
        assert env.env_secret("KEY", file) == first
        if os.name != "nt":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_the_environment_comes_first(self, monkeypatch, tmp_path):
        monkeypatch.setenv("KEY", "k" * 32)
        assert env.env_secret("KEY", tmp_path / "key") == "k" * 32
        assert not (tmp_path / "key").exists()

    def test_a_short_one_is_refused(self, monkeypatch, tmp_path):
        monkeypatch.setenv("KEY", "short")
        with pytest.raises(env.EnvError, match="KEY must have at least 32 characters"):
            env.env_secret("KEY", tmp_path / "key")

    def test_an_empty_file_is_refused(self, monkeypatch, tmp_path):
        monkeypatch.delenv("KEY", raising=False)
        (tmp_path / "key").write_text("\n")
        with pytest.raises(env.EnvError, match="key must have at least 32 characters"):
            env.env_secret("KEY", tmp_path / "key")


class TestDatabase:
    def read(self, monkeypatch, raw, tmp_path):
        monkeypatch.setenv("URL", raw)
        return env.env_database("URL", tmp_path / "default.sqlite3")

    def test_without_a_url_there_is_a_file(self, monkeypatch, tmp_path):
        found = self.read(monkeypatch, "", tmp_path)
        assert found["NAME"] == tmp_path / "default.sqlite3"
        assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"

    def test_sqlite_by_url(self, monkeypatch, tmp_path):
        found = self.read(monkeypatch, f"sqlite:///{tmp_path}/a%20b.sqlite3", tmp_path)
        assert found["NAME"] == tmp_path / "a b.sqlite3"

    def test_postgresql_by_url(self, monkeypatch, tmp_path):
        url = "postgresql://ada:p%40ss@db.example:5433/bench?sslmode=require"
        found = self.read(monkeypatch, url, tmp_path)
        assert (found["USER"], found["PASSWORD"]) == ("ada", "p@ss")
        assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example", "5433", "bench")
        assert found["OPTIONS"] == {"sslmode": "require"}

    def test_a_socket_folder_by_url(self, monkeypatch, tmp_path):
        found = self.read(monkeypatch, "postgresql:///bench?host=/run/postgresql", tmp_path)
        assert found["HOST"] == "/run/postgresql"
        assert found["OPTIONS"] == {}

    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            ("mysql://localhost/bench", "must start with"),
            ("postgresql://localhost", "must name a database"),
            ("sqlite://", "must name a file"),
            ("postgresql://localhost:port/bench", "port"),
        ],
    )
    def test_a_url_that_cannot_be_meant_is_named(self, monkeypatch, tmp_path, raw, words):
        with pytest.raises(env.EnvError, match=f"URL .*{words}"):
            self.read(monkeypatch, raw, tmp_path)


class TestDotenv:
    def test_lines_are_read_where_the_environment_is_silent(self, monkeypatch, tmp_path):
        monkeypatch.delenv("FIRST", raising=False)
        monkeypatch.delenv("QUOTED", raising=False)
        monkeypatch.setenv("SECOND", "environment")
        file = tmp_path / ".env"
        file.write_text('# words\n\nFIRST=a=b\nexport QUOTED = "c d"\nSECOND=file\n')

        env.load_dotenv(file)

        assert os.environ["FIRST"] == "a=b"
        assert os.environ["QUOTED"] == "c d"
        assert os.environ["SECOND"] == "environment"
        monkeypatch.delenv("FIRST")
        monkeypatch.delenv("QUOTED")

    def test_a_line_that_cannot_be_meant_is_named(self, tmp_path):
        file = tmp_path / ".env"
        file.write_text("GOOD_ONE_FOR_NOTHING\n")
        with pytest.raises(env.EnvError, match=r"\.env, line 1: expected KEY=value"):
            env.load_dotenv(file)

    def test_no_file_is_fine(self, tmp_path):
        env.load_dotenv(tmp_path / ".env")


def _settings(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    program = (
        "from django.conf import settings as s;"
        "print(s.SECURE_SSL_REDIRECT, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE,"
        " s.SECURE_HSTS_SECONDS > 0, s.SUPPORT_CONTACTS[:1], s.ALLOWED_HOSTS, s.DEBUG)"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "distressbench_site.settings",
            "SECRET_KEY": SECRET_KEY,
            "DISTRESSBENCH_DATA": str(tmp_path),
            "DATABASE_URL": "",
            **environment,
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("DEBUG", "maybe"),
        ("HTTPS", "2"),
        ("BEHIND_PROXY", "proxy"),
        ("EMAIL_PORT", "smtp"),
        ("SECRET_KEY", "short"),
        ("DATABASE_URL", "oracle://x/y"),
        ("LEASE_MINUTES_UNTOUCHED", "0"),
        ("SIGN_INS_PER_MINUTE", "lots"),
        ("SUPPORT_CONTACTS", "Samaritans 116 123"),
        ("TIME_ZONE", "Mars/Olympus"),
        ("LOG_LEVEL", "LOUD"),
    ],
)
def test_the_program_does_not_start_with_a_setting_that_cannot_be_meant(tmp_path, name, raw):
    done = _settings(tmp_path, **{name: raw})

    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert name in last or raw in last


def test_https_switches_everything_that_belongs_to_it(tmp_path):
    assert _settings(tmp_path, HTTPS="1").stdout.startswith("True True True True")
    assert _settings(tmp_path, HTTPS="0").stdout.startswith("False False False False")


def test_support_contacts_are_ones_own(tmp_path):
    done = _settings(tmp_path, SUPPORT_CONTACTS="Our desk: ext. 12; Night line: 116 123")
    assert "[{'name': 'Our desk', 'detail': 'ext. 12'}]" in done.stdout


def test_debugging_is_off_and_only_this_machine_is_served_by_default(tmp_path):
    done = _settings(tmp_path, DEBUG="", ALLOWED_HOSTS="localhost,127.0.0.1")
    assert done.stdout.strip().endswith("False")


def test_everything_that_the_settings_read_is_told_in_the_example():
    told = (ROOT / ".env.example").read_text()
    read = set()
    for line in (ROOT / "distressbench_site" / "settings.py").read_text().split("env_")[1:]:
        name = line.partition('("')[2].partition('"')[0]
        if name.isupper():
            read.add(name)

    assert len(read) > 15
    assert sorted(name for name in read if name not in told) == []
