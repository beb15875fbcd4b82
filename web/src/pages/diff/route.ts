import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

export type DiffSearch = { a?: string; b?: string };

/** Two rollouts, each as RUN/KEY/NUMBER. */
export const diffRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/diff",
  validateSearch: (search: RawSearch): DiffSearch =>
    compact({ a: readText(search.a), b: readText(search.b) }),
  component: lazyRouteComponent(() => import("./DiffPage"), "DiffPage"),
});
