import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readFlag, readText } from "#/app/search";

export const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: (search: RawSearch) =>
    compact({ next: readText(search.next), ended: readFlag(search.ended) }),
  component: lazyPage(() => import("./LoginPage"), "LoginPage"),
});
