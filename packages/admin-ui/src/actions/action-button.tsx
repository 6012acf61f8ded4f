import { Button, Tooltip, type ButtonProps } from '@mantine/core';
import type { AdminActionShape } from '../api/shapes.ts';
import { wordsFor } from '../values/format.ts';

interface ActionButtonProps extends ButtonProps {
  readonly action: AdminActionShape;
  readonly count: number;
  readonly onRun: () => void;
}

/** One that this member of staff may not run stays visible, and says why. */
export function ActionButton({ action, count, onRun, ...look }: ActionButtonProps) {
  const label = wordsFor(action.label, count);
  if (action.refused === undefined)
    return (
      <Button {...look} onClick={onRun}>
        {label}
      </Button>
    );
  return (
    <Tooltip label={action.refused} multiline maw={320} withArrow events={{ hover: true, focus: true, touch: true }}>
      <Button {...look} data-disabled aria-disabled aria-description={action.refused} onClick={(event) => event.preventDefault()}>
        {label}
      </Button>
    </Tooltip>
  );
}
