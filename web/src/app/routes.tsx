/** Every page, one line each; a page's own folder holds its route. */
import { compareRoute } from "#/pages/compare/route";
import { evaluationsRoute, localEvaluationsRoute } from "#/pages/evaluations/route";
import { homeRoute } from "#/pages/home/route";
import { loginRoute } from "#/pages/login/route";
import { runConfigRoute, runOverviewRoute, runRoute } from "#/pages/run/route";
import { runsRoute } from "#/pages/runs/route";
import { suiteRoute, suitesRoute } from "#/pages/suites/route";
import { rootRoute } from "./root";

export const routeTree = rootRoute.addChildren([
  homeRoute,
  loginRoute,
  runsRoute,
  runRoute.addChildren([runOverviewRoute, runConfigRoute]),
  compareRoute,
  suitesRoute,
  suiteRoute,
  evaluationsRoute,
  localEvaluationsRoute,
]);
