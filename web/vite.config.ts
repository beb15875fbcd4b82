/** Builds the dashboard into the Python package, which serves it as files; `proctor.pages` knows them. */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { mockApi } from "./dev/mock.ts";
import { precompress } from "./scripts/precompress.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const backend = process.env.PROCTOR_URL;

export default defineConfig({
  resolve: { alias: { "#": here("./src") } },
  plugins: [react({ compiler: true }), precompress(), ...(backend ? [] : [mockApi()])],
  css: { transformer: "lightningcss", lightningcss: { cssModules: { pattern: "[name]_[local]" } } },
  build: {
    outDir: here("../src/proctor/pages/dist"),
    emptyOutDir: true,
    target: ["chrome123", "firefox120", "safari17.5"],
    cssMinify: "lightningcss",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
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
