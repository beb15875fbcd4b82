/** The filters of the catalogue, with what each can be set to. A pasted `owner/name` opens that environment. */
import { useNavigate } from "@tanstack/react-router";
import { type ClipboardEvent, type KeyboardEvent, type SyntheticEvent, useRef } from "react";
import type { EnvironmentFacets } from "#/api/types";
import type { SearchChange } from "#/app/search";
import { Segmented } from "#/design/Segmented";
import { type Filter, FilterBar } from "#/parts/FilterBar";
import { type CatalogueSearch, readSlug, VISIBILITIES } from "./search";
import { text } from "./words";

type Props = {
  search: CatalogueSearch;
  facets: EnvironmentFacets | undefined;
  /** Whether somebody is logged in, who may have environments. */
  hasMine: boolean;
  onChange: (change: SearchChange<CatalogueSearch>) => void;
};

export function CatalogueFilters({ search, facets, hasMine, onChange }: Props) {
  const jump = useJump();
  return (
    <div onPasteCapture={jump.onPaste} onKeyDownCapture={jump.onKeyDown}>
      <FilterBar
        search={{
          text: search.q ?? "",
          placeholder: text.search,
          onChange: (q) => jump.isLeaving() || onChange({ q: q || undefined }),
        }}
        filters={buildFilters(search, facets, onChange)}
        hasMore={search.mine ?? false}
        onClear={() =>
          onChange({ q: undefined, tag: undefined, owner: undefined, mine: undefined, visibility: undefined })
        }
        more={
          hasMine && (
            <Segmented
              label={text.whose}
              value={search.mine ? "mine" : "all"}
              options={[
                { value: "all", label: text.all },
                { value: "mine", label: text.mine },
              ]}
              onChange={(whose) => onChange({ mine: whose === "mine" || undefined })}
            />
          )
        }
      />
    </div>
  );
}

function buildFilters(
  search: CatalogueSearch,
  facets: EnvironmentFacets | undefined,
  onChange: Props["onChange"],
): Filter[] {
  return [
    {
      name: "tag",
      label: text.tag,
      values: facets?.tag ?? [],
      selected: search.tag ?? [],
      onChange: (selected) => onChange({ tag: selected.length > 0 ? selected : undefined }),
    },
    {
      name: "owner",
      label: text.owner,
      values: facets?.owner ?? [],
      selected: search.owner ? [search.owner] : [],
      onChange: (selected) => onChange({ owner: selected.at(-1) }),
    },
    {
      name: "visibility",
      label: text.visibility,
      values: facets?.visibility ?? [],
      selected: search.visibility ? [search.visibility] : [],
      onChange: (selected) => onChange({ visibility: VISIBILITIES.find((each) => each === selected.at(-1)) }),
      nameOf: (value) => text.names[value as keyof typeof text.names] ?? value,
    },
  ];
}

function useJump() {
  const navigate = useNavigate();
  const leaving = useRef(false);
  const go = (written: string, event: SyntheticEvent): void => {
    const params = readSlug(written);
    if (!params) return;
    event.preventDefault();
    event.stopPropagation();
    leaving.current = true;
    void navigate({ to: "/e/$owner/$name/readme", params });
  };
  return {
    /** What was typed is no filter then, and must not call the page back. */
    isLeaving: () => leaving.current,
    onPaste: (event: ClipboardEvent) => {
      go(event.clipboardData.getData("text"), event);
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
      if (event.target.type === "search") go(event.target.value, event);
    },
  };
}
