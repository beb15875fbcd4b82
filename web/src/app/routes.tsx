/** Every page, one line each; a page's own folder holds its route. */
import { ADMIN_ROUTES, adminRoute } from "#/pages/admin/route";
import { compareRoute } from "#/pages/compare/route";
import { datasetRoute, datasetsRoute } from "#/pages/datasets/route";
import { diffRoute } from "#/pages/diff/route";
import { environmentRoute, environmentTabRoutes } from "#/pages/environment/route";
import { environmentsRoute } from "#/pages/environments/route";
import { evaluationsRoute, localEvaluationsRoute } from "#/pages/evaluations/route";
import { homeRoute } from "#/pages/home/route";
import { loginRoute } from "#/pages/login/route";
import { rolloutRoute } from "#/pages/rollout/route";
import {
  labelRoute,
  runCommentsRoute,
  runConfigRoute,
  runDecideRoute,
  runFailuresRoute,
  runLabelsRoute,
  runLogsRoute,
  runOverviewRoute,
  runRoute,
  runSamplesRoute,
  runSearchRoute,
} from "#/pages/run/route";
import { runsRoute } from "#/pages/runs/route";
import { SETTINGS_ROUTES, settingsRoute } from "#/pages/settings/route";
import { sourceRoute, sourcesRoute } from "#/pages/sources/route";
import { suiteRoute, suitesRoute } from "#/pages/suites/route";
import { chooseEnvironmentRoute, wizardRoute } from "#/pages/wizard/route";
import { rootRoute } from "./root";

export const routeTree = rootRoute.addChildren([
  homeRoute,
  loginRoute,
  runsRoute,
  runRoute.addChildren([
    runOverviewRoute,
    runSamplesRoute,
    runSearchRoute,
    runLogsRoute,
    runFailuresRoute,
    runDecideRoute,
    runLabelsRoute,
    runConfigRoute,
    runCommentsRoute,
  ]),
  labelRoute,
  rolloutRoute,
  diffRoute,
  compareRoute,
  suitesRoute,
  suiteRoute,
  environmentsRoute,
  environmentRoute.addChildren([...environmentTabRoutes, evaluationsRoute]),
  localEvaluationsRoute,
  chooseEnvironmentRoute,
  wizardRoute,
  settingsRoute.addChildren(SETTINGS_ROUTES),
  adminRoute.addChildren(ADMIN_ROUTES),
  datasetsRoute,
  datasetRoute,
  sourcesRoute,
  sourceRoute,
]);
