import { Hint } from '../feedback/hint.tsx';
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
    <Hint label={state.hint} multiline maw={320}>
      {badge}
    </Hint>
  );
}
