/** Builds the dashboard into the Python package, which serves it as files; `proctor.pages` knows them. */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { mockApi } from "./dev/mock.ts";
import { precompress } from "./scripts/precompress.ts";
import { preloads } from "./scripts/preloads.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const backend = process.env.PROCTOR_URL;

export default defineConfig({
  resolve: { alias: { "#": here("./src") } },
  plugins: [react({ compiler: true }), preloads(), precompress(), ...(backend ? [] : [mockApi()])],
  css: { transformer: "lightningcss", lightningcss: { cssModules: { pattern: "[local]_[hash]" } } },
  build: {
    outDir: here("../src/proctor/pages/dist"),
    emptyOutDir: true,
    target: ["chrome123", "firefox120", "safari17.5"],
    cssMinify: "lightningcss",
    cssCodeSplit: false, // all of it compresses to less than a handful of requests cost
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        chunkFileNames: ({ name }) => `assets/${name.replace(/~.*/, "")}-[hash].js`,
        // Few files: each costs a request, of which browsers make six at a time. Small parts that a few pages
        // share are put together, though a page may then load a part that it does not use.
        codeSplitting: {
          groups: [
            { name: "app", tags: ["$initial"], priority: 2 },
            // Parts read their page's words as soon as they are loaded, and files that were put together may
            // import each other; the words import nothing but the app.
            {
              name: "words",
              test: /\/(actions|pages\/.+)\/words\.ts$/,
              minShareCount: 2,
              entriesAware: true,
              priority: 1,
            },
            { name: "shared", minShareCount: 2, entriesAware: true, entriesAwareMergeThreshold: 4_000 },
          ],
        },
      },
    },
  },
  server: {
    host: "127.0.0.1",
    ...(backend ? { proxy: { "/api": { target: backend, changeOrigin: true } } } : {}),
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}", "tests/**/*.test.ts"],
    restoreMocks: true,
  },
});
