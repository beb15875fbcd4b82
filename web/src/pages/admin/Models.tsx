/** The models of the server, what they cost, and where that price comes from. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { modelsQuery, PRICE_KEY, pricesQuery } from "#/api/admin";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { ModelInfo, ModelPrice } from "#/api/types";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { DataTable } from "#/parts/DataTable";
import { FormDialog } from "#/parts/FormDialog";
import { formatMoney } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import styles from "../settings/forms.module.css";
import { text } from "./words";

const words = text.models;

type Line = { model: string; offered: ModelInfo | undefined; set: ModelPrice | undefined };
type Asked = { set: Line } | { remove: Line } | null;

export function Models() {
  const models = useQuery(modelsQuery);
  const prices = useQuery(pricesQuery);
  const [asked, setAsked] = useState<Asked>(null);
  const close = () => setAsked(null);
  return (
    <Section title={words.title} note={words.note} flush>
      <Loaded query={models}>
        {(offered) => (
          <DataTable
            label={words.title}
            columns={[
              {
                title: words.model,
                cell: (line) => (
                  <>
                    <span className={styles.name}>{line.model}</span>{" "}
                    {!line.offered && <span className={styles.faint}>({words.unused})</span>}
                  </>
                ),
              },
              { title: words.provider, cell: (line) => line.offered?.provider },
              { title: words.input, isNumber: true, cell: (line) => showPrice(line, "input") },
              { title: words.output, isNumber: true, cell: (line) => showPrice(line, "output") },
              { title: words.cached, isNumber: true, cell: (line) => showPrice(line, "cached") },
              { title: words.origin, cell: (line) => words.origins[findOrigin(line)] },
              {
                title: text.actions,
                isActions: true,
                cell: (line) => (
                  <>
                    <Button
                      small
                      aria-label={words.setOf(line.model)}
                      onClick={() => setAsked({ set: line })}
                    >
                      {words.set}
                    </Button>
                    {line.set && (
                      <Button
                        small
                        aria-label={words.removeOf(line.model)}
                        onClick={() => setAsked({ remove: line })}
                      >
                        {words.remove}
                      </Button>
                    )}
                  </>
                ),
              },
            ]}
            rows={joinLines(offered, prices.data ?? [])}
            keyOf={(line) => line.model}
            empty={words.none}
          />
        )}
      </Loaded>
      {asked && "set" in asked && <PriceDialog line={asked.set} onClose={close} />}
      {asked && "remove" in asked && <RemoveDialog model={asked.remove.model} onClose={close} />}
    </Section>
  );
}

function joinLines(offered: readonly ModelInfo[], prices: readonly ModelPrice[]): Line[] {
  const names = [...new Set([...offered.map((model) => model.id), ...prices.map((price) => price.model)])];
  return names.map((model) => ({
    model,
    offered: offered.find((each) => each.id === model),
    set: prices.find((each) => each.model === model),
  }));
}

type Rate = "input" | "output" | "cached";

function showPrice({ offered, set }: Line, rate: Rate): string {
  return formatMoney((offered ?? set)?.[`${rate}_usd_per_million`]);
}

function findOrigin({ offered, set }: Line): keyof typeof words.origins {
  if (set) return set.overridden_by ? "registry" : "set";
  return offered?.input_usd_per_million == null ? "none" : "list";
}

function PriceDialog({ line, onClose }: { line: Line; onClose: () => void }) {
  const now = line.offered ?? line.set;
  const [input, setInput] = useState(String(now?.input_usd_per_million ?? ""));
  const [output, setOutput] = useState(String(now?.output_usd_per_million ?? ""));
  const [cached, setCached] = useState(String(now?.cached_usd_per_million ?? ""));
  const save = useChange({
    send: () =>
      read(
        api.PUT("/api/v1/prices/{model}", {
          params: { path: { model: line.model } },
          body: {
            input_usd_per_million: Number(input),
            output_usd_per_million: Number(output),
            cached_usd_per_million: cached.trim() === "" ? null : Number(cached),
          },
        }),
      ),
    refresh: [PRICE_KEY],
    onDone: onClose,
  });
  const price = { type: "number", min: 0, step: "any" } as const;
  return (
    <FormDialog
      title={words.setOf(line.model)}
      onClose={onClose}
      action={words.save}
      onSubmit={() => save.submit()}
      isBusy={save.isBusy}
      error={save.error}
      fields={["input_usd_per_million", "output_usd_per_million", "cached_usd_per_million"]}
    >
      {line.set?.overridden_by && <p>{words.overridden}</p>}
      <TextField
        {...price}
        required
        label={words.input}
        hint={words.priceHint}
        value={input}
        error={save.problems.input_usd_per_million}
        onChange={(event) => setInput(event.target.value)}
      />
      <TextField
        {...price}
        required
        label={words.output}
        value={output}
        error={save.problems.output_usd_per_million}
        onChange={(event) => setOutput(event.target.value)}
      />
      <TextField
        {...price}
        label={words.cached}
        hint={words.cachedHint}
        value={cached}
        error={save.problems.cached_usd_per_million}
        onChange={(event) => setCached(event.target.value)}
      />
    </FormDialog>
  );
}

function RemoveDialog({ model, onClose }: { model: string; onClose: () => void }) {
  const remove = useChange({
    send: () => read(api.DELETE("/api/v1/prices/{model}", { params: { path: { model } } })),
    refresh: [PRICE_KEY],
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={words.removeTitle(model)}
      action={words.remove}
      onConfirm={() => remove.submit()}
      isBusy={remove.isBusy}
      error={remove.error}
    >
      <p>{words.removeText}</p>
    </ConfirmDialog>
  );
}
