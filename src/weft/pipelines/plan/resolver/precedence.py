"""Which resolver answers for a dataset: the project's override, the dataset's own, the workspace's default.

The first of the three that is named decides.  A named resolver that is missing or disabled is an error: a
fallback would read other data than the user asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.names import listed, near
from weft.core.source import Source
from weft.errors import ResolutionError
from weft.io.location import PUBLISHED
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.words import ResolverSource
from weft.pipelines.plan.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The resolver of a dataset and who named it; None is the one of datasets that runs registered."""

    resolver: Resolver | None
    source: ResolverSource

    @property
    def id(self) -> str:
        """Id of the resolver."""
        return PUBLISHED if self.resolver is None else self.resolver.id

    @property
    def version(self) -> int:
        """Version of the resolver; the built-in one is always the first."""
        return 1 if self.resolver is None else self.resolver.version


def resolver_for(dataset: Dataset, project: Project | None, catalog: Catalog) -> Chosen:
    """Return the resolver that answers for a dataset in a project; raise `ResolutionError` when there is none."""
    override = _override(dataset, project)
    if override is not None and project is not None:
        key, said = override
        at = project.at.of(f"resolver_overrides.{key}")
        told = f"project {project.name!r} overrides the resolver of {dataset.name!r} with"
        return _named(said, told, "project_override", at, catalog)
    if dataset.resolver_id is not None:
        at = dataset.at.of("resolver_id")
        return _named(dataset.resolver_id, f"dataset {dataset} names", "dataset_resolver", at, catalog)
    if dataset.origin == "registered":
        return Chosen(resolver=None, source="dataset_resolver")
    settings = catalog.settings
    if settings.default_resolver is not None:
        at = settings.at.of("default_resolver")
        return _named(settings.default_resolver, "weft.yml names as default", "system_default", at, catalog)
    default = catalog.default_resolver()
    if default is not None:
        return _named(default.id, "the default is", "system_default", default.at.of("status"), catalog)
    raise ResolutionError(
        f"nothing says where the data of {dataset} lies: no resolver is named and none is the default",
        code="W1303",
        help="give the dataset a `resolver_id`, or write `default_resolver` into weft.yml",
        at=dataset.at.whole,
    )


def _override(dataset: Dataset, project: Project | None) -> tuple[str, str] | None:
    """Return the key and the resolver of the project's override; the id of the dataset goes before its name."""
    overrides = {} if project is None else project.resolver_overrides
    for key in (dataset.id, dataset.name):
        if key in overrides:
            return key, overrides[key]
    return None


def _named(said: str, told: str, source: ResolverSource, at: Source | None, catalog: Catalog) -> Chosen:
    if said == PUBLISHED:
        return Chosen(resolver=None, source=source)
    found = catalog.resolver(said)
    if found is None:
        names = [name for r in catalog.workspace.resolvers for name in dict.fromkeys((r.id, r.name))]
        close = near(said, names, most=1)
        raise ResolutionError(
            f"{told} the resolver {said!r}, which is not there",
            code="W1301",
            help=f"did you mean {close[0]!r}?" if close else f"resolvers are {listed(names)}",
            at=at,
        )
    if found.status == "disabled":
        raise ResolutionError(
            f"{told} the resolver {said!r}, which is disabled",
            code="W1302",
            help="set `status: active` in its file, or name another; no other resolver takes its place",
            at=at,
        )
    return Chosen(resolver=found, source=source)
