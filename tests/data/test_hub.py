"""Data sets of the hub: loaded when no such path exists; errors that say what to type."""

import os
import subprocess
import sys

import pytest

from scrimp.core.errors import DataError, NetworkError
from scrimp.core.job import DataSpec
from scrimp.data.content import read_content
from scrimp.data.hub import HubSource
from scrimp.data.source import open_source


def loader(name, config):
    assert (name, config) == ("owner/name", "small")
    return {"train": [{"text": "a"}, {"text": "b"}], "test": [{"text": "c"}]}


def test_rows_come_with_their_split_and_place(tmp_path):
    source = open_source("owner/name:small", base=tmp_path, load=loader)
    assert isinstance(source, HubSource)
    rows = list(source.rows())
    assert [(row.split, row.values["text"], str(row.place)) for row in rows] == [
        ("train", "a", "owner/name:small[train], row 1"),
        ("train", "b", "owner/name:small[train], row 2"),
        ("test", "c", "owner/name:small[test], row 1"),
    ]


def test_splits_that_are_not_needed_are_not_read(tmp_path):
    class Unread:
        def __iter__(self):
            raise AssertionError("read for nothing")

    def load(name, config):
        return {"train": [{"text": "a"}], "train_gen": Unread(), "test": [{"text": "c"}]}

    content = read_content(DataSpec(path="owner/name"), base=tmp_path, load=load)
    assert (len(content.train), len(content.evaluation)) == (1, 1)
    assert len(content.sha256) == 64
    with pytest.raises(DataError) as caught:
        read_content(DataSpec(path="owner/name", split="trains"), base=tmp_path, load=load)
    assert "train, train_gen, test" in caught.value.what


def test_a_data_set_with_a_training_split_alone_holds_rows_out_by_hash(tmp_path):
    def load(name, config):
        return {"train": [{"text": f"text {number}"} for number in range(200)]}

    content = read_content(DataSpec(path="owner/name", eval_share=0.2), base=tmp_path, load=load)
    assert len(content.train) + len(content.evaluation) == 200
    assert 20 < len(content.evaluation) < 60


def test_a_path_of_that_name_goes_first(tmp_path):
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "owner" / "name" / "a.jsonl").write_text('{"text": "here"}\n', encoding="utf-8")
    source = open_source("owner/name", base=tmp_path, load=loader)
    assert [row.values["text"] for row in source.rows()] == ["here"]


def test_a_misspelt_file_is_no_hub_id(tmp_path):
    with pytest.raises(DataError, match="no file or folder"):
        open_source("folder/train.jsonl", base=tmp_path, load=loader)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="no file or folder"):
        open_source("folder/rows", base=tmp_path, load=loader)


def test_without_network_the_error_says_what_to_type(tmp_path):
    def offline(name, config):
        raise ConnectionError("Couldn't reach 'owner/name' on the Hub")

    with pytest.raises(NetworkError) as caught:
        open_source("owner/name", base=tmp_path, load=offline)
    assert caught.value.exit_code == 11
    assert "owner/name" in caught.value.what
    assert "datasets.load_dataset('owner/name')" in caught.value.next_step


def test_a_missing_configuration_is_explained(tmp_path):
    def choosy(name, config):
        raise ValueError("Config name is missing.\nPlease pick one among: ['en', 'fr']")

    with pytest.raises(DataError) as caught:
        open_source("owner/name", base=tmp_path, load=choosy)
    assert "['en', 'fr']" in caught.value.what
    assert "owner/name:CONFIG" in caught.value.next_step


def test_a_mistake_in_the_program_is_not_taken_for_a_missing_network(tmp_path):
    def wrong(name, config):
        raise AttributeError("oops")

    with pytest.raises(AttributeError):
        open_source("owner/name", base=tmp_path, load=wrong)


@pytest.mark.parametrize("name", ["RepositoryNotFoundError", "DatasetNotFoundError"])
def test_a_data_set_that_the_hub_does_not_have_is_no_matter_of_the_network(tmp_path, name):
    def load(hub_id, config):
        raise type(name, (OSError,), {})("404 Client Error")

    with pytest.raises(DataError, match="no public data set") as caught:
        open_source("owner/name", base=tmp_path, load=load)
    assert "spelling" in caught.value.next_step


def test_a_missing_network_is_noticed_at_the_first_question(tmp_path):
    """With real packages and an address where nobody listens: `datasets` itself would ask for half a minute."""
    pytest.importorskip("datasets")
    code = (
        "from pathlib import Path\n"
        "from scrimp.core.errors import NetworkError\n"
        "from scrimp.data.source import open_source\n"
        "try:\n"
        "    open_source('owner/name', base=Path('.'))\n"
        "except NetworkError as error:\n"
        "    print('refused:', error.exit_code)\n"
    )
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused: 11"
    assert "Retrying" not in done.stderr
