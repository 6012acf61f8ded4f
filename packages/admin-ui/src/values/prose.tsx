import { Fragment } from 'react';
import { withLocalTimes } from './format.ts';
import css from './values.module.css';

/** A sentence of a declaration: what stands between backticks is drawn as code. */
export function Prose({ text }: { readonly text: string }) {
  return text.split('`').map((part, index) =>
    index % 2 === 0 ? (
      // oxlint-disable-next-line no-array-index-key
      <Fragment key={index}>{withLocalTimes(part)}</Fragment>
    ) : (
      <code key={index} className={css['code']}>
        {part}
      </code>
    ),
  );
}
