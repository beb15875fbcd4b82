/** The router: addresses with plain search parameters, pages loaded when a link is about to be followed. */
import type { QueryClient } from "@tanstack/react-query";
import { createRouter } from "@tanstack/react-router";
import { Skeleton } from "#/design/Skeleton";
import { NotFound, PageError } from "./PageError";
import { routeTree } from "./routes";
import { parseSearch, stringifySearch } from "./search";

export const MAIN_ID = "main";

export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree,
    context: { client },
    parseSearch,
    stringifySearch,
    pathParamsAllowedCharacters: ["@"], // as in /e/ada/sums@1.0
    defaultPreload: "intent",
    defaultPreloadDelay: 80,
    defaultPendingComponent: () => <Skeleton lines={6} />,
    defaultPendingMs: 200,
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: true,
    scrollToTopSelectors: [`#${MAIN_ID}`],
  });
}

export type AppRouter = ReturnType<typeof createAppRouter>;

declare module "@tanstack/react-router" {
  interface Register {
    router: AppRouter;
  }
}
