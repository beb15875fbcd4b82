/** The filters and the order of the catalogue, as they stand in its address. */
import type { EnvironmentListQuery, EnvironmentSort } from "#/api/types";
import { compact, type RawSearch, readChoice, readFlag, readList, readText } from "#/app/search";

const SORTS = ["updated_at", "created_at", "name", "owner"] as const satisfies readonly EnvironmentSort[];
export const VISIBILITIES = ["public", "private"] as const;

export const readCatalogueSearch = (search: RawSearch) =>
  compact({
    q: readText(search.q)?.slice(0, 100),
    tag: readList(search.tag)?.slice(0, 20),
    owner: readText(search.owner),
    mine: readFlag(search.mine),
    visibility: readChoice(search.visibility, VISIBILITIES),
    sort: readChoice(search.sort, SORTS),
  });

export type CatalogueSearch = ReturnType<typeof readCatalogueSearch>;

/** What of the address the server is asked. */
export function buildCatalogueQuery({ q, ...filters }: CatalogueSearch): EnvironmentListQuery {
  return { ...filters, ...(q ? { search: q } : {}) };
}

export const isFiltered = ({ sort: _, ...filters }: CatalogueSearch): boolean =>
  Object.keys(filters).length > 0;

const SLUG =
  /^(?:https?:\/\/[^/\s]+\/e\/)?([a-z0-9][a-z0-9-]*)\/([a-z0-9][a-z0-9-]*(?:@[\w.+!-]+)?)(?:\/.*)?$/;

/** The environment that a pasted text names: `owner/name`, with a version or not, or the address of its page. */
export function readSlug(pasted: string): { owner: string; name: string } | null {
  const found = SLUG.exec(pasted.trim());
  return found?.[1] && found[2] ? { owner: found[1], name: found[2] } : null;
}
