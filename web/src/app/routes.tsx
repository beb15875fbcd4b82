/** Every page, one line each; a page's own folder holds its route. */
import { compareRoute } from "#/pages/compare/route";
import { diffRoute } from "#/pages/diff/route";
import { evaluationsRoute, localEvaluationsRoute } from "#/pages/evaluations/route";
import { homeRoute } from "#/pages/home/route";
import { loginRoute } from "#/pages/login/route";
import { rolloutRoute } from "#/pages/rollout/route";
import {
  runConfigRoute,
  runFailuresRoute,
  runLogsRoute,
  runOverviewRoute,
  runRoute,
  runSamplesRoute,
} from "#/pages/run/route";
import { runsRoute } from "#/pages/runs/route";
import { suiteRoute, suitesRoute } from "#/pages/suites/route";
import { rootRoute } from "./root";

export const routeTree = rootRoute.addChildren([
  homeRoute,
  loginRoute,
  runsRoute,
  runRoute.addChildren([runOverviewRoute, runSamplesRoute, runLogsRoute, runFailuresRoute, runConfigRoute]),
  rolloutRoute,
  diffRoute,
  compareRoute,
  suitesRoute,
  suiteRoute,
  evaluationsRoute,
  localEvaluationsRoute,
]);
