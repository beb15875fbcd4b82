import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bindings, findBinding, listenForKeys } from "./keys";

const press = (key: string, options: KeyboardEventInit = {}, target: EventTarget = document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options }));

describe("keys", () => {
  const down = vi.fn();
  const runs = vi.fn();
  let blocked = false;
  let stop = () => {};

  beforeEach(() => {
    down.mockClear();
    runs.mockClear();
    blocked = false;
    const bound = [
      { keys: "j", label: "Next row", run: down },
      { keys: "g r", label: "Runs", run: runs },
    ];
    bindings.set(() => [{ id: "test", bindings: bound }]);
    stop = listenForKeys(document, () => blocked);
  });
  afterEach(() => stop());

  it("run what is bound, alone or in sequence", () => {
    press("j");
    press("g");
    press("r");
    expect(down).toHaveBeenCalledTimes(1);
    expect(runs).toHaveBeenCalledTimes(1);
  });

  it("start anew after a key that continues nothing", () => {
    press("g");
    press("j");
    press("r");
    expect(down).toHaveBeenCalledTimes(1);
    expect(runs).not.toHaveBeenCalled();
  });

  it("are silent with a modifier, in a field, and below a dialog", () => {
    press("j", { ctrlKey: true });
    press("j", { metaKey: true });
    const field = document.body.appendChild(document.createElement("input"));
    press("j", {}, field);
    field.remove();
    blocked = true;
    press("j");
    expect(down).not.toHaveBeenCalled();
  });

  it("let the latest binding win", () => {
    const mine = { keys: "j", label: "mine", run: () => {} };
    expect(findBinding(["j"], [{ keys: "j", label: "before", run: () => {} }, mine])).toBe(mine);
  });
});
