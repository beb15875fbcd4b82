import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readFlag, readText } from "#/app/search";

export const datasetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/datasets",
  validateSearch: (search: RawSearch) => compact({ mine: readFlag(search.mine) }),
  component: lazyRouteComponent(() => import("./DatasetsPage"), "DatasetsPage"),
});

/** Which version is previewed is in the address. */
export const datasetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/datasets/$owner/$name",
  validateSearch: (search: RawSearch) => compact({ version: readText(search.version) }),
  component: lazyRouteComponent(() => import("./DatasetPage"), "DatasetPage"),
});
