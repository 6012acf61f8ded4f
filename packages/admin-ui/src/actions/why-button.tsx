import { Button, Tooltip, type ButtonProps } from '@mantine/core';
import type { ReactNode } from 'react';

interface WhyButtonProps extends ButtonProps {
  /** Why this staff member cannot use it; absent: it works. */
  readonly why?: string | undefined;
  /** Where it leads, instead of `onRun`. */
  readonly href?: string;
  readonly onRun?: () => void;
  readonly children: ReactNode;
}

/** A button that stays visible where it cannot be used, and says why. */
export function WhyButton({ why, href, onRun, children, ...look }: WhyButtonProps) {
  if (why === undefined)
    return href === undefined ? (
      <Button {...look} onClick={onRun}>
        {children}
      </Button>
    ) : (
      <Button {...look} component="a" href={href}>
        {children}
      </Button>
    );
  return (
    <Tooltip label={why} multiline maw={320} withArrow events={{ hover: true, focus: true, touch: true }}>
      <Button {...look} data-disabled aria-disabled aria-description={why} onClick={(event) => event.preventDefault()}>
        {children}
      </Button>
    </Tooltip>
  );
}
