import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { readCatalogueSearch } from "./search";

export const environmentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/environments",
  validateSearch: readCatalogueSearch,
  component: lazyPage(() => import("./EnvironmentsPage"), "EnvironmentsPage"),
});
