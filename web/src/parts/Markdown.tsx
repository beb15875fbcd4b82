/**
 * Markdown as React elements, never as HTML: tags in it are shown as they were written, images of other hosts
 * are named and not fetched, links open only with a safe protocol.
 */
import type { Token, Tokens } from "marked";
import { createElement, Fragment, lazy, type ReactNode, Suspense } from "react";
import { CodeBlock } from "#/design/CodeBlock";
import { Icon } from "#/design/Icon";
import { words } from "#/words";
import { showControls } from "./ansiText";
import { Code } from "./Code";
import styles from "./Markdown.module.css";
import { LONGEST_MARKDOWN, lexMarkdown, type MathToken, safeHref } from "./markdownTokens";

const Formula = lazy(() => import("./Formula").then((module) => ({ default: module.Formula })));

export function Markdown({ text }: { text: string }) {
  if (text.length > LONGEST_MARKDOWN) return <pre className={styles.plain}>{showControls(text)}</pre>;
  return <div className={styles.markdown}>{renderAll(lexMarkdown(text))}</div>;
}

const renderAll = (tokens: readonly Token[] | undefined): ReactNode =>
  tokens?.map((token, index) => <Fragment key={index}>{render(token)}</Fragment>);

const inside = (token: Token): ReactNode => renderAll("tokens" in token ? token.tokens : undefined);

const RENDERERS: Record<string, (token: never) => ReactNode> = {
  space: () => null,
  paragraph: (token: Tokens.Paragraph) => <p>{inside(token)}</p>,
  heading: (token: Tokens.Heading) => createElement(`h${Math.min(6, token.depth + 2)}`, null, inside(token)),
  blockquote: (token: Tokens.Blockquote) => <blockquote>{inside(token)}</blockquote>,
  hr: () => <hr />,
  code: (token: Tokens.Code) => (
    <CodeBlock text={token.text}>
      <Code text={token.text} language={token.lang ?? ""} />
    </CodeBlock>
  ),
  list: (token: Tokens.List) => renderList(token),
  table: (token: Tokens.Table) => renderTable(token),
  strong: (token: Tokens.Strong) => <strong>{inside(token)}</strong>,
  em: (token: Tokens.Em) => <em>{inside(token)}</em>,
  del: (token: Tokens.Del) => <del>{inside(token)}</del>,
  br: () => <br />,
  codespan: (token: Tokens.Codespan) => <code>{showControls(token.text)}</code>,
  escape: (token: Tokens.Escape) => token.text,
  link: (token: Tokens.Link) => renderLink(token),
  image: (token: Tokens.Image) => renderImage(token),
  text: (token: Tokens.Text) => (token.tokens ? inside(token) : showControls(token.text)),
  math: (token: MathToken) => (
    <Suspense fallback={<code>{token.raw}</code>}>
      <Formula tex={token.text} display={token.display} />
    </Suspense>
  ),
};

function render(token: Token): ReactNode {
  const renderer = RENDERERS[token.type] as ((token: Token) => ReactNode) | undefined;
  return renderer ? renderer(token) : showControls(token.raw); // HTML and whatever else: as it was written
}

function renderList(token: Tokens.List): ReactNode {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.text} />}
      {renderAll(item.tokens)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function renderTable(token: Tokens.Table): ReactNode {
  return (
    <div className={styles.scroll}>
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index} scope="col">
                {renderAll(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, index) => (
                <td key={index}>{renderAll(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function renderLink(token: Tokens.Link): ReactNode {
  const href = safeHref(token.href);
  if (href === null) return showControls(token.raw);
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {inside(token)}
    </a>
  );
}

const renderImage = (token: Tokens.Image): ReactNode => (
  <span className={styles.image} title={words.image.foreign}>
    <Icon name="external" size={12} /> {token.text || words.image.foreign}: {showControls(token.href)}
  </span>
);
