import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";
import { readWizardSearch } from "./search";

export const wizardRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/e/$owner/$name/run",
  validateSearch: readWizardSearch,
  component: lazyPage(() => import("./WizardPage"), "WizardPage"),
});

/** Where the environment is chosen first, or found from the run that is to be repeated. */
export const chooseEnvironmentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/run",
  validateSearch: (search: RawSearch) =>
    compact({ q: readText(search.q), from: readText(search.from) }) as { q?: string; from?: string },
  component: lazyPage(() => import("./ChooseEnvironmentPage"), "ChooseEnvironmentPage"),
});
