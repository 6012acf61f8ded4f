import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { copyText } from '../feedback/copy-text.ts';
import { Notice } from '../feedback/notice.tsx';

/** Shown once: they live in this component's parent alone. */
export function RecoveryCodes({ codes, onDone }: { readonly codes: readonly string[]; readonly onDone: () => void }) {
  const [said, setSaid] = useState('');
  const copy = async (): Promise<void> =>
    setSaid((await copyText(codes.join('\n'))) ? 'Copied.' : 'This browser does not let the page copy. Select the codes and copy them.');
  return (
    <Stack gap="md">
      <Notice tone="warning">
        Store these recovery codes now; they are not shown again. Each replaces a one-time code once, when the device is lost.
      </Notice>
      <Code block>{codes.join('\n')}</Code>
      <Text size="sm" role="status" mih="1.3rem">
        {said}
      </Text>
      <Group justify="flex-end" gap="sm">
        <Button variant="default" onClick={() => void copy()}>
          Copy
        </Button>
        <Button onClick={onDone}>I have stored them</Button>
      </Group>
    </Stack>
  );
}
