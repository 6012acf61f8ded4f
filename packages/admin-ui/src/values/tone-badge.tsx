import { Tooltip } from '@mantine/core';
import type { AdminState } from '../api/shapes.ts';
import css from './values.module.css';

/** A state in a word; shape as well as colour tells the tones apart. */
export function ToneBadge({ state }: { readonly state: AdminState }) {
  const badge = (
    <span className={css['tone']} data-tone={state.tone}>
      {state.value.replaceAll('_', ' ')}
    </span>
  );
  if (state.hint === undefined) return badge;
  return (
    <Tooltip label={state.hint} multiline maw={320} withArrow>
      {badge}
    </Tooltip>
  );
}
