import { Button, Group, Modal, Stack, Text, Textarea } from '@mantine/core';
import { useRef, useState } from 'react';
import type { AdminSecret } from '../api/shapes.ts';
import { copyText } from '../feedback/copy-text.ts';
import { Notice } from '../feedback/notice.tsx';
import { Icon } from '../icons/icon.tsx';
import { Prose } from '../values/prose.tsx';

export function SecretDialog({ secret, onClose }: { readonly secret: AdminSecret; readonly onClose: () => void }) {
  const [said, setSaid] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const copy = async (): Promise<void> => {
    const done = await copyText(secret.value);
    if (!done) field.current?.select();
    setSaid(done ? 'Copied.' : 'This browser does not let the page copy. The text is selected: copy it by hand.');
  };
  return (
    // Only the button closes it: an accidental click must not lose what is never shown again. It goes without a fade, so that nothing lingers.
    <Modal
      opened
      onClose={onClose}
      title={`${secret.label}, shown once`}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      transitionProps={{ duration: 0 }}
      centered
      size="lg"
      zIndex={400}
    >
      <Stack gap="md">
        <Notice tone="warning">
          <Prose text={secret.note} />
        </Notice>
        <Textarea
          ref={field}
          aria-label={secret.label}
          value={secret.value}
          readOnly
          autosize
          autoComplete="off"
          spellCheck={false}
          data-autofocus
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', overflowWrap: 'anywhere' } }}
          onFocus={(event) => event.currentTarget.select()}
        />
        <Text size="sm" role="status" mih="1.3rem">
          {said}
        </Text>
        <Group justify="flex-end" gap="sm">
          <Button variant="default" leftSection={<Icon name="copy" size={16} />} onClick={() => void copy()}>
            Copy
          </Button>
          <Button onClick={onClose}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
