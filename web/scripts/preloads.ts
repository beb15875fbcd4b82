/**
 * Writes `preloads.json`: which scripts a page needs, by its address. The server names them in the `Link` header
 * of the page, so that the browser fetches them all at once: the entry first, which every page waits for.
 */
import type { Plugin } from "vite";

const NAME = "preloads.json";

/** The first pattern that an address matches counts. */
const PAGES: readonly (readonly [pattern: string, modules: readonly string[]])[] = [
  ["^/$", ["pages/home/HomePage.tsx"]],
  ["^/runs/[^/]+/t/", ["pages/rollout/RolloutPage.tsx"]],
  ["^/runs/[^/]+/samples$", ["pages/run/RunPage.tsx", "pages/run/samples/Samples.tsx"]],
  ["^/runs/[^/]+/?$", ["pages/run/RunPage.tsx", "pages/run/Overview.tsx"]],
  ["^/runs/?$", ["pages/runs/RunsPage.tsx"]],
  ["^/environments/?$", ["pages/environments/EnvironmentsPage.tsx"]],
  ["^/e/[^/]+/[^/]+/readme$", ["pages/environment/EnvironmentPage.tsx", "pages/environment/Readme.tsx"]],
  ["^/compare$", ["pages/compare/ComparePage.tsx"]],
  ["^/diff$", ["pages/diff/DiffPage.tsx"]],
];

export function preloads(): Plugin {
  return {
    name: "preloads",
    apply: "build",
    generateBundle(_, bundle) {
      const chunks = Object.values(bundle).filter((each) => each.type === "chunk");
      const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
      const entry = chunks.find((chunk) => chunk.isEntry);
      if (!entry) throw new Error("The build has no entry.");

      const collect = (start: (typeof chunks)[number], found: Set<string>): Set<string> => {
        if (found.has(start.fileName)) return found;
        found.add(start.fileName);
        for (const name of start.imports) {
          const next = byName.get(name);
          if (next) collect(next, found);
        }
        return found;
      };
      const listed = PAGES.map(([pattern, modules]) => {
        const files = collect(entry, new Set());
        for (const module of modules) {
          const chunk = chunks.find((each) => each.facadeModuleId?.endsWith(`/src/${module}`));
          if (!chunk) throw new Error(`${module}, named in scripts/preloads.ts, is no page of its own.`);
          collect(chunk, files);
        }
        return { pattern, files: [...files] };
      });
      this.emitFile({ type: "asset", fileName: NAME, source: JSON.stringify(listed) });
    },
  };
}
