import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { readCompareSearch } from "./search";

export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  validateSearch: readCompareSearch,
  component: lazyRouteComponent(() => import("./ComparePage"), "ComparePage"),
});
