import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readChoice, readList } from "#/app/search";
import { environmentRoute } from "#/pages/environment/route";

const readEvaluationSearch = (search: RawSearch) =>
  compact({
    model: readList(search.model),
    agent: readList(search.agent),
    show: readChoice(search.show, ["every"] as const),
  });

export type EvaluationSearch = ReturnType<typeof readEvaluationSearch>;

const component = lazyPage(() => import("./EvaluationsPage"), "EvaluationsPage");

export const evaluationsRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/evaluations",
  validateSearch: readEvaluationSearch,
  component,
});

/** Of an environment without an owner, as those of run folders are. */
export const localEvaluationsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/e/$name/evaluations",
  validateSearch: readEvaluationSearch,
  component,
});
