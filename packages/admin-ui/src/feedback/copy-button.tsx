import { Button } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Icon } from '../icons/icon.tsx';
import { copyText } from './copy-text.ts';

const SAID_MS = 2000;

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [said, setSaid] = useState<'copied' | 'refused' | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = window.setTimeout(() => setSaid(null), SAID_MS);
    return () => window.clearTimeout(timer);
  }, [said]);
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
