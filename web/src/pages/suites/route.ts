import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

export const suitesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/suites",
  component: lazyPage(() => import("./SuitesPage"), "SuitesPage"),
});

/** Which axes the matrix has is in the address. */
export const suiteRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/suites/$suiteId",
  validateSearch: (search: RawSearch) =>
    compact({ rows: readText(search.rows), columns: readText(search.columns) }),
  component: lazyPage(() => import("./SuitePage"), "SuitePage"),
});
