import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { readRolloutSearch } from "./search";

export const rolloutRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId/t/$taskKey/$number",
  validateSearch: readRolloutSearch,
  component: lazyRouteComponent(() => import("./RolloutPage"), "RolloutPage"),
});
