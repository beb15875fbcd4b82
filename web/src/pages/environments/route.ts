import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { readCatalogueSearch } from "./search";

export const environmentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/environments",
  validateSearch: readCatalogueSearch,
  component: lazyRouteComponent(() => import("./EnvironmentsPage"), "EnvironmentsPage"),
});
