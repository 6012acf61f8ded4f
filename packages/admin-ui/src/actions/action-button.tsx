import type { ButtonProps } from '@mantine/core';
import type { AdminActionShape } from '../api/shapes.ts';
import { wordsFor } from '../values/format.ts';
import { WhyButton } from './why-button.tsx';

interface ActionButtonProps extends ButtonProps {
  readonly action: AdminActionShape;
  readonly count: number;
  /** Why it cannot be run now, where the action itself does not say. */
  readonly why?: string | undefined;
  readonly onRun: () => void;
}

export function ActionButton({ action, count, why, onRun, ...look }: ActionButtonProps) {
  return (
    <WhyButton {...look} why={action.refused ?? why} onRun={onRun}>
      {wordsFor(action.label, count)}
    </WhyButton>
  );
}
