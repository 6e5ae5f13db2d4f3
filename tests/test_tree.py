"""Rules of the tree that no linter knows."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from tests.source_tree import ROOT, SRC, imports, modules, parsed

LONGEST_MODULE = 500
MOST_MODULES = 15
ENDINGS = re.compile(r"(ations?|ions?|ings?|[eo]rs?|ed|es|s|e|y)$")
MUTATING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "update"}
OPENING = {"bind", "connect", "create_server", "create_task", "listen", "mkdir", "open", "Popen"}
OPENING |= {"read_bytes", "read_text", "run", "socket", "start", "unlink", "write_text"}
# Who answers with a status of failure that is no error's, and what with.
OWN_STATUSES = {
    "console/pages/actions.py": "no page of this name",
    "console/pages/suggestions.py": "the same",
    "control/arm/requests.py": "a content type, which no other edge is strict about",
    "control/arm/routes.py": "another method than the path has",
    "control/arm/tokens.py": "a form that OAuth refuses, in its own words",
    "control/v1/openapi.py": "describes the answers",
    "control/v1/server.py": "the health of a server, which is no refusal",
}
# Who locks files or has them on disk without security/files.py, and why.
HANDLES_FILES_ITSELF = {
    "actuators/command/runner.py": "a process of its own, which imports the standard library only",
    "agent/journal.py": "appends a line, which is on disk before the next step",
    "recordings/file.py": "the same",
    "security/files.py": "is where it is written once",
}
# Who names stores, drivers or publishers without being the runtime, and what for.
NAMES_ADAPTERS = {
    "cli/actuators/commands.py": "an actuator on another machine",
    "cli/actuators/process.py": "the same",
    "cli/commands/store.py": "copies stores, and marks one as restored",
    "cli/doctor/command.py": "examines a store",
    "cli/doctor/stores.py": "the same",
    "cli/doctor/tokens.py": "who may use a store's server",
    "cli/fleet/platform_import.py": "lists the VMs of a hypervisor",
    "cli/history/verification.py": "reads history from the store itself",
    "cli/stores/backup.py": "backs a store up",
    "cli/stores/ends.py": "opens the stores to copy",
    "cli/stores/migration.py": "migrates a store",
    "cli/stores/principal_places.py": "tokens while no server runs",
    "scenarios/stages/emulator.py": "an emulator in memory",
}
# Words of the glossary that invite a second meaning, and the classes that may bear them bare.
# A request and a fault are the same thing wherever they are: each part has its own view of it.
# A change is not: the SDK and /v1 are public, and each has one of its own, as the glossary says.
GLOSSARY = {
    "Change": {"core/change.py", "client/_changes.py", "control/v1/wire.py"},
    "Fault": {"service/faults.py", "control/v1/wire.py", "testing/_faults.py"},
    "Order": set[str](),
    "Plan": {"agent/model.py"},
    "Report": {"scenarios/report.py"},
    "Request": {
        "client/_steps.py",
        "metadata/http/requests.py",
        "scenarios/observations.py",
        "targets/http.py",
        "testing/_ledger.py",
    },
    "Role": {"security/identities.py"},
}
# Packages whose tests are not in a folder of their name: what uses them is tested, or all of its kind.
TESTED_ELSEWHERE = {
    "actuators/libvirt/connections": "tests/actuators/libvirt/test_contract.py",
    "control/v1/sources": "tests/cli/hosts/test_sources.py",
    "scenarios/formats": "tests/cli/exam/test_command.py",
    "scenarios/judgement": "tests/scenarios/test_expectations.py",
    "scenarios/stages": "tests/scenarios/test_player.py",
    "service/requests": "tests/metadata/test_watching.py",
    "storage/backup": "tests/cli/stores/test_backup.py",
    "storage/relational/publishing": "tests/storage/test_contract_outbox.py",
}
VAGUE_NAMES = {"manager", "helper", "util", "common", "base", "data", "info", "handle"}
PURE_STDLIB = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "re",
    "string",
    "types",
    "typing",
}


def _texts() -> Iterator[Path]:
    return (path for path in _files() if path.suffix != ".png")


def _files() -> Iterator[Path]:
    """Every file of the tree that git knows or would know."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file():
            yield path


def test_no_module_is_longer_than_five_hundred_lines() -> None:
    lengths = {
        str(module.relative_to(ROOT)): len(module.read_text().splitlines())
        for module in modules("src", "tests", "tools", "benchmarks")
    }

    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}


def test_modules_are_named_after_a_thing_of_the_glossary_not_after_their_role() -> None:
    words = {module: set(re.split("_", module.stem)) for module in modules("src")}

    vague = {
        str(module.relative_to(ROOT)): sorted(found)
        for module, stems in words.items()
        if (found := {w for w in stems if w in VAGUE_NAMES or w.removesuffix("s") in VAGUE_NAMES})
    }

    assert vague == {}


def test_the_product_has_one_name_and_not_before_is_a_field() -> None:
    """The old name was the field's, too: it is left only where a directory of that name is found."""
    may_know_it = ("runtime/takeover.py", "runtime/test_takeover.py", "tests/test_tree.py")
    strays = {
        f"{path.relative_to(ROOT)}:{number}"
        for path in _texts()
        if not str(path).endswith(may_know_it)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"notbefore|NOTBEFORE", line)
    }
    names = {str(path.relative_to(ROOT)) for path in _files()}

    assert strays == set()
    assert {name for name in names if "notbefore" in name.lower()} == set()


def test_the_top_of_the_package_is_packages_and_the_clock() -> None:
    assert {module.name for module in SRC.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "clock.py",
    }


def test_no_package_has_more_than_fifteen_modules() -> None:
    sizes = {
        str(folder.relative_to(SRC)): len(set(folder.glob("*.py")) - {folder / "__init__.py"})
        for folder in SRC.rglob("*")
        if folder.is_dir()
    }

    assert {name: size for name, size in sizes.items() if size > MOST_MODULES} == {}


def test_every_package_is_tested_in_a_folder_of_its_name_or_where_the_list_says() -> None:
    packages = {module.parent for module in modules("src") if module.stem != "__init__"} - {SRC}
    untested = {
        str(package.relative_to(SRC))
        for package in packages
        if not any(_test_folder(package).glob("test_*.py"))
    }

    assert untested == TESTED_ELSEWHERE.keys()
    assert [path for path in TESTED_ELSEWHERE.values() if not (ROOT / path).is_file()] == []


def _test_folder(package: Path) -> Path:
    """What a part keeps to itself has an underscore; the folder of its tests has none."""
    parts = (part.lstrip("_") for part in package.relative_to(SRC).parts)
    return ROOT.joinpath("tests", *parts)


def test_no_two_modules_of_a_package_differ_by_an_ending_alone() -> None:
    roots = Counter(
        (str(path.parent.relative_to(SRC)), ENDINGS.sub("", path.stem.lstrip("_")))
        for path in SRC.rglob("*")
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    )

    assert {root for root, count in roots.items() if count > 1} == set()


def test_no_class_name_is_used_twice_in_a_package() -> None:
    classes = Counter(
        (str(module.parent.relative_to(SRC)), node.name)
        for module in modules("src")
        for node in parsed(module).body
        if isinstance(node, ast.ClassDef)
    )

    assert {name for name, count in classes.items() if count > 1} == set()


def test_a_word_of_the_glossary_names_no_second_thing() -> None:
    named = {word: set[str]() for word in GLOSSARY}
    for module in modules("src"):
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.ClassDef) and node.name in GLOSSARY:
                named[node.name].add(str(module.relative_to(SRC)))

    assert named == GLOSSARY


def test_the_core_imports_only_itself_and_pure_parts_of_the_standard_library() -> None:
    foreign = {
        (str(module.relative_to(ROOT)), name)
        for module in modules("src/forewarned/core")
        for name in imports(module)
        if not name.startswith(("forewarned.core", "forewarned.config.durations"))
        and name.partition(".")[0] not in PURE_STDLIB
    }

    assert foreign == set()


def test_no_module_makes_code_as_it_runs() -> None:
    makers = {
        str(module.relative_to(SRC))
        for module in modules("src")
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"exec", "eval", "compile"}
    }

    assert makers == set()


def test_only_storage_speaks_to_a_database() -> None:
    speakers = {
        module.relative_to(SRC).parts[0]
        for module in modules("src")
        if any(name.partition(".")[0] in {"sqlite3", "psycopg"} for name in imports(module))
    }

    assert speakers <= {"storage"}


def test_the_runtime_puts_adapters_together_and_those_who_need_one_without_it_are_listed() -> None:
    """Errors of storage are no adapter: every command may tell them."""
    adapters = ("storage", "actuators", "publishing")
    naming = {
        str(module.relative_to(SRC))
        for module in modules("src")
        if module.relative_to(SRC).parts[0] not in {*adapters, "runtime"}
        for name in imports(module)
        if name.startswith(tuple(f"forewarned.{each}" for each in adapters))
        and name != "forewarned.storage.errors"
    }

    assert naming == NAMES_ADAPTERS.keys()


def test_no_part_imports_what_another_keeps_to_itself() -> None:
    """The agent is a program of the SDK like any other: names with an underscore may change."""
    private = {
        f"{module.relative_to(SRC)}:{node.lineno}: {ast.unparse(node)}"
        for module in modules("src")
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _imported(node)
        if name[:1] == ["forewarned"]
        and name[1:2] != [module.relative_to(SRC).parts[0]]
        and any(re.match(r"_(?!_)", part) for part in name)
    }

    assert private == set()


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[list[str]]:
    """The parts of each name that is imported, with the name of its module."""
    of = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    yield from (f"{of}{alias.name}".split(".") for alias in node.names)


def test_only_the_libvirt_driver_needs_libvirt() -> None:
    users = {
        "/".join(module.relative_to(SRC).parts[:2])
        for module in modules("src")
        if "libvirt" in set(imports(module))
    }

    assert users <= {"actuators/libvirt"}


def test_private_locked_and_flushed_files_are_made_in_one_module() -> None:
    own = r"\b(flock|fsync|O_CREAT|0o[467]00)\b"
    making = {
        str(module.relative_to(SRC))
        for module in modules("src")
        if re.search(own, module.read_text())
    }

    assert making == HANDLES_FILES_ITSELF.keys()


def test_there_is_one_way_in_for_every_change() -> None:
    """Whoever wants a change calls the engine; a preview is the same, rolled back."""
    changing = {
        str(module.relative_to(SRC))
        for module in modules("src")
        if ".transact(" in module.read_text()
    }

    assert changing == {"service/engine.py", "service/events/preview.py"}


def test_importing_a_module_does_nothing() -> None:
    """Definitions and imports apart. A click group may be given its commands."""
    effects = [
        f"{module.relative_to(SRC)}:{node.lineno}: {ast.unparse(node).splitlines()[0]}"
        for module in modules("src")
        if module != SRC / "__main__.py"
        for node in parsed(module).body
        if isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.Delete | ast.AugAssign)
        or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.If) and _name(node.test) not in {"TYPE_CHECKING", "__name__"})
    ]

    assert [effect for effect in effects if not effect.startswith("cli/commands/")] == []


def test_no_module_changes_what_it_holds() -> None:
    changes = []
    for module in modules("src"):
        tree = parsed(module)
        own = {
            target.id
            for node in tree.body
            for target in _targets(node)
            if isinstance(target, ast.Name)
        }
        changes += [
            f"{module.relative_to(SRC)}:{node.lineno}: {ast.unparse(node)}"
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.stmt | ast.expr)
            if isinstance(node, ast.Global) or _changed(node) & own
        ]

    assert changes == []


def _changed(node: ast.AST) -> set[str]:
    """The names whose values a statement changes in place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return {_name(node.func.value)} if node.func.attr in MUTATING else set()
    changed = (each for each in _targets(node) if isinstance(each, ast.Subscript | ast.Attribute))
    return {_name(each.value) for each in changed}


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Compare):
        node = node.left
    return node.id if isinstance(node, ast.Name) else ""


def test_constructors_open_nothing() -> None:
    """What is to be opened is opened, and closed, by a `with`."""
    opening = [
        f"{module.relative_to(SRC)}:{call.lineno}: {ast.unparse(call)}"
        for module in modules("src")
        for function in ast.walk(parsed(module))
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in OPENING
    ]

    assert opening == []


def test_categories_of_refusals_become_statuses_in_errors_modules_alone() -> None:
    edges = modules(*(f"src/forewarned/{edge}" for edge in ("control", "console", "metadata")))
    knowing = {
        str(module.relative_to(SRC))
        for module in edges
        if re.search(r"\bCategory\.", module.read_text())
        and re.search(r"\bHTTPStatus\.", module.read_text())
    }

    assert {path for path in knowing if not path.endswith("/errors.py")} == set()


def test_statuses_of_failure_are_named_in_errors_modules_and_where_they_are_no_errors() -> None:
    """So whoever catches an error does not decide what it means to HTTP."""
    edges = modules(*(f"src/forewarned/{edge}" for edge in ("control", "console", "metadata")))
    naming = {
        str(module.relative_to(SRC))
        for module in edges
        if module.name != "errors.py"
        for node in ast.walk(parsed(module))
        if _is_failure(node)
    }

    assert naming == OWN_STATUSES.keys()


def _is_failure(node: ast.AST) -> bool:
    """Whether it is `HTTPStatus.NOT_FOUND` or the like, or its number as an argument."""
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        number = node.value.value if node.arg in {"status", "status_code"} else None
        return isinstance(number, int) and number >= HTTPStatus.BAD_REQUEST
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "HTTPStatus":
        return HTTPStatus[node.attr] >= HTTPStatus.BAD_REQUEST
    return False


def test_the_service_reads_documents_as_clients_sent_them_in_one_package() -> None:
    """Its other modules may store what is encoded, and pass refusals on."""
    documents, names_no_property = "forewarned.service.azure.models.documents", ("encoded", "Error")
    reading = {
        f"{module.relative_to(SRC)}: {name}"
        for module in modules("src/forewarned/service")
        if module.parent != SRC / "service" / "azure" / "models"
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in map(".".join, _imported(node))
        if name.startswith(documents) and not name.endswith(names_no_property)
    }

    assert reading == set()


def test_only_settings_read_the_environment() -> None:
    readers = {
        str(module.relative_to(SRC))
        for module in modules("src")
        if re.search(
            r"\bos\.(environ|getenv)\b|from os import .*(environ|getenv)", module.read_text()
        )
    }

    # The SDK has no settings of its own: it looks for its endpoint in the VM's environment.
    # Hooks and actuators look for programs, and for the cluster they run in. A handler that is
    # examined has the environment of the examination.
    assert readers <= {
        "runtime/settings/loading.py",
        "agent/config/settings.py",
        "targets/environment.py",
        "client/_endpoint/discovery.py",
        "scenarios/isolation/keeper.py",
    }
