/** Copies a text, and says so. */
import { useEffect, useState } from "react";
import { announce } from "#/app/announcer";
import { words } from "#/words";
import { Button, IconButton } from "./Button";

const SHOWN_MS = 1500;

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    announce(words.copied);
    return true;
  } catch {
    announce(words.copyFailed);
    return false;
  }
}

export function CopyButton({ text, label }: { text: string | (() => string); label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => setCopied(await copyText(typeof text === "string" ? text : text()));
  const icon = copied ? "check" : "copy";
  if (!label) return <IconButton label={words.copy} icon={icon} onClick={copy} />;
  return (
    <Button look="plain" small icon={icon} onClick={copy}>
      {copied ? words.copied : label}
    </Button>
  );
}
