import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

export type DiffSearch = { a?: string; b?: string };

/** Two rollouts, each as RUN/KEY/NUMBER. */
export const diffRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/diff",
  validateSearch: (search: RawSearch): DiffSearch =>
    compact({ a: readText(search.a), b: readText(search.b) }),
  component: lazyPage(() => import("./DiffPage"), "DiffPage"),
});
