import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readFlag, readText } from "#/app/search";

export const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: (search: RawSearch) =>
    compact({ next: readText(search.next), ended: readFlag(search.ended) }),
  component: lazyRouteComponent(() => import("./LoginPage"), "LoginPage"),
});
