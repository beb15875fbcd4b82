/** The environment that the tabs are about, as its frame has loaded it. */
import { createContext, useContext } from "react";
import type { Slug, VersionOf } from "#/api/environments";
import type { EnvironmentInfo } from "#/api/types";

export type Shown = {
  environment: EnvironmentInfo;
  /** The version in the address, or else the newest; null if there is none at all. */
  version: string | null;
  /** Who reads; null for nobody who is logged in. */
  user: string | null;
  teams: readonly string[];
};

export const EnvironmentContext = createContext<Shown | null>(null);

export function useEnvironment(): Shown & { slug: Slug } {
  const shown = useContext(EnvironmentContext);
  if (!shown) throw new Error("A tab of an environment stands outside its frame.");
  const { owner, name } = shown.environment;
  return { ...shown, slug: { owner, name } };
}

/** `sums@1.0` as it stands in an address. */
export function splitVersion(written: string): { name: string; version: string | null } {
  const at = written.indexOf("@");
  return at < 0
    ? { name: written, version: null }
    : { name: written.slice(0, at), version: written.slice(at + 1) || null };
}

export const versionOf = (slug: Slug, version: string): VersionOf => ({ ...slug, version });
