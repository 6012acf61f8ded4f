import type { ReactNode } from 'react';
import { CopyButton } from '../feedback/copy-button.tsx';
import css from './values.module.css';

/** More than this is shown as plain text: colours are not worth a slow page. */
const COLOURED_CHARACTERS_MAX = 100_000;

/** JSON as text with coloured parts; every piece is a text node, never markup. */
export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = JSON.stringify(value, null, 2) ?? 'undefined';
  return (
    <div>
      <CopyButton text={text} label={`Copy ${label}`} />
      <pre className={css['block']} tabIndex={0} role="region" aria-label={label}>
        {text.length > COLOURED_CHARACTERS_MAX ? text : coloured(text)}
      </pre>
    </div>
  );
}

const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\btrue\b|\bfalse\b|\bnull\b/g;

function coloured(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, match.index));
    const name = match[1] !== undefined ? 'jsonKey' : match[0].startsWith('"') ? 'jsonText' : 'jsonOther';
    parts.push(
      <span key={match.index} className={css[name]}>
        {match[0]}
      </span>,
    );
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}
