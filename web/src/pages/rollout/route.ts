import { createRoute } from "@tanstack/react-router";
import { beginningQuery, eventWindowQuery, findWindow, rolloutQuery } from "#/api/rollouts";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { isInBeginning, readFilter, readRolloutSearch, readStep } from "./search";

export const rolloutRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId/t/$taskKey/$number",
  validateSearch: readRolloutSearch,
  loaderDeps: ({ search }) => readFilter(search),
  /** The rollout is asked for while the page's code is still on its way. */
  loader: ({ context: { client }, params, deps, location, preload }) => {
    if (preload) return;
    const address = { ...params, number: Number(params.number) };
    const step = readStep(location.hash);
    void client.prefetchQuery((isInBeginning(step) ? beginningQuery : rolloutQuery)(address, deps));
    void client.prefetchQuery(eventWindowQuery(address, findWindow(step ?? 0)));
  },
  component: lazyPage(() => import("./RolloutPage"), "RolloutPage"),
});
