import { createRoute } from "@tanstack/react-router";
import { runListQuery } from "#/api/runs";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { buildListQuery, readRunSearch } from "./search";

export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  validateSearch: readRunSearch,
  loaderDeps: ({ search }) => buildListQuery(search),
  /** Asked for while the page's code is still on its way. */
  loader: ({ context: { client }, deps, preload }) => {
    if (!preload) void client.prefetchInfiniteQuery(runListQuery(deps));
  },
  component: lazyPage(() => import("./RunsPage"), "RunsPage"),
});
