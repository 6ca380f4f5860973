import pytest

from evengraph.desk.access import MAX_SESSIONS, Access

OURS = {"origin": "http://127.0.0.1:80"}


@pytest.fixture
def access():
    return Access(80, "ana")


def test_the_token_opens_any_number_of_sessions(access):
    cookies = {access.enter(access.token) for _ in range(3)}
    assert len(cookies) == 3
    assert None not in cookies
    assert access.address == f"http://127.0.0.1:80/?token={access.token}"


def test_a_wrong_token_opens_none(access):
    assert access.enter("") is None
    assert access.enter("wrong\u20ac") is None
    assert access.session({access.cookie: ""}) is None
    assert access.session({}) is None


def test_a_one_time_address_works_once(access):
    token = access.one_time_address().partition("=")[2]
    assert token != access.token
    assert access.enter(token)
    assert access.enter(token) is None


def test_tokens_are_long_and_differ(access):
    assert len(access.token) >= 32
    assert access.token != Access(80, "ana").token


def test_only_names_of_this_machine_are_known(access):
    assert access.knows_host("127.0.0.1:80")
    assert access.knows_host("LOCALHOST:80")
    for host in ("evil.example:80", "127.0.0.1", "127.0.0.1:81", ""):
        assert not access.knows_host(host)


def test_a_form_needs_its_token_and_our_origin(access):
    session = access.session({access.cookie: access.enter(access.token)})
    assert access.allows_post(session, OURS, session.form_token)
    assert access.allows_post(session, {}, session.form_token)
    assert not access.allows_post(session, OURS, "")
    assert not access.allows_post(session, {"origin": "http://evil.example"}, session.form_token)
    assert not access.allows_post(session, {"origin": "null"}, session.form_token)
    other = access.session({access.cookie: access.enter(access.token)})
    assert not access.allows_post(session, OURS, other.form_token)


def test_a_session_can_be_renamed_but_not_to_nothing(access):
    session = access.session({access.cookie: access.enter(access.token)})
    session.rename("  bea \n ")
    assert session.who == "bea"
    session.rename(" ")
    assert session.who == "bea"
    session.rename("x" * 1000)
    assert len(session.who) == 60


def test_old_sessions_make_room(access):
    first = access.enter(access.token)
    for _ in range(MAX_SESSIONS):
        last = access.enter(access.token)
    assert access.session({access.cookie: first}) is None
    assert access.session({access.cookie: last})
