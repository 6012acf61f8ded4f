import type { Tooltip as KitTooltip } from '@mantine/core';
import { cloneElement, useState, type ReactElement } from 'react';

interface HintProps {
  readonly label: string;
  readonly multiline?: boolean;
  readonly maw?: number;
  readonly children: ReactElement<{ onPointerEnter?: () => void; onFocus?: () => void }>;
}

/** What is said when something is pointed at. The code that shows it comes with the first one; a server that is away sends none, and nothing is said. */
export function Hint({ children, ...look }: HintProps) {
  const [Tooltip, setTooltip] = useState<typeof KitTooltip | null>(null);
  if (Tooltip !== null)
    return (
      <Tooltip withArrow defaultOpened {...look}>
        {children}
      </Tooltip>
    );
  const want = async (): Promise<void> => {
    const [found] = await Promise.allSettled([import('./late-tooltip.ts'), import('../late-styles.ts')]);
    if (found.status === 'fulfilled') setTooltip(() => found.value.Tooltip);
  };
  return cloneElement(children, { onPointerEnter: () => void want(), onFocus: () => void want() });
}
