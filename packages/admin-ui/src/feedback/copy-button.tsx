import { ActionIcon, Button } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Icon } from '../icons/icon.tsx';
import { copyText } from './copy-text.ts';

const SAID_MS = 2000;

interface CopyButtonProps {
  readonly text: string;
  readonly label: string;
  /** Without words, beside a value. */
  readonly isIcon?: boolean;
}

export function CopyButton({ text, label, isIcon = false }: CopyButtonProps) {
  const [said, setSaid] = useState<'copied' | 'refused' | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = window.setTimeout(() => setSaid(null), SAID_MS);
    return () => window.clearTimeout(timer);
  }, [said]);
  if (isIcon)
    return (
      <ActionIcon
        variant="subtle"
        color="gray"
        c="dimmed"
        size="xs"
        ml={4}
        aria-label={said === null ? label : said === 'copied' ? 'Copied' : 'Select the text and copy it'}
        onClick={() => void copyText(text).then((done) => setSaid(done ? 'copied' : 'refused'))}
      >
        <Icon name={said === 'copied' ? 'check' : 'copy'} size={12} />
      </ActionIcon>
    );
  return (
    <Button
      variant="subtle"
      size="compact-xs"
      mb={4}
      aria-label={said === null ? label : undefined}
      leftSection={<Icon name={said === 'copied' ? 'check' : 'copy'} size={14} />}
      onClick={() => void copyText(text).then((done) => setSaid(done ? 'copied' : 'refused'))}
    >
      <span aria-live="polite">{said === 'copied' ? 'Copied' : said === 'refused' ? 'Select the text and copy it' : 'Copy'}</span>
    </Button>
  );
}
