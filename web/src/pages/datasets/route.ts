import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readFlag, readText } from "#/app/search";

export const datasetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/datasets",
  validateSearch: (search: RawSearch) => compact({ mine: readFlag(search.mine) }),
  component: lazyPage(() => import("./DatasetsPage"), "DatasetsPage"),
});

/** Which version is previewed is in the address. */
export const datasetRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/datasets/$owner/$name",
  validateSearch: (search: RawSearch) => compact({ version: readText(search.version) }),
  component: lazyPage(() => import("./DatasetPage"), "DatasetPage"),
});
