import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { readRunSearch } from "./search";

export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  validateSearch: readRunSearch,
  component: lazyRouteComponent(() => import("./RunsPage"), "RunsPage"),
});
