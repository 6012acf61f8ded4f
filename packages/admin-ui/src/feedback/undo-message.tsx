import { Button, Group, Text } from '@mantine/core';

interface UndoMessageProps {
  readonly text: string;
  readonly undo: { readonly label: string; readonly run: () => void };
  readonly onDone: () => void;
}

/** What was done, and the way back. */
export function UndoMessage({ text, undo, onDone }: UndoMessageProps) {
  return (
    <Group justify="space-between" gap="sm" wrap="nowrap">
      <Text size="sm" span>
        {text}
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => {
          onDone();
          undo.run();
        }}
      >
        {undo.label}
      </Button>
    </Group>
  );
}
