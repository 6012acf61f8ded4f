import { Button, FileInput, Group, Progress, Text } from '@mantine/core';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { sendFile } from '../api/send-file.ts';
import { toFault } from '../api/fault.ts';
import type { AdminField, AdminFileTarget } from '../api/shapes.ts';

interface FileFieldProps {
  readonly id: string;
  readonly field: AdminField;
  readonly target: AdminFileTarget;
  readonly description: ReactNode;
  /** The id of the upload; empty: none. */
  readonly value: string;
  /** What the upload is called that the record has now. */
  readonly title: string | undefined;
  readonly error: string | undefined;
  readonly onChange: (id: string) => void;
  /** Whether a file is on its way: the form waits for it. */
  readonly onBusy: (busy: boolean) => void;
}

/** Sends a file as soon as it is chosen. The record refers to it when the form is saved. */
export function FileField({ id, field, target, description, value, title, error, onChange, onBusy }: FileFieldProps) {
  const [name, setName] = useState(title);
  const [percent, setPercent] = useState<number | null>(null);
  const [fault, setFault] = useState<string | undefined>();
  const sending = useRef<AbortController | null>(null);
  useEffect(() => () => sending.current?.abort(), []);

  const choose = async (file: File | null): Promise<void> => {
    if (file === null) return;
    const controller = new AbortController();
    sending.current = controller;
    setFault(undefined);
    setPercent(0);
    onBusy(true);
    try {
      const uploaded = await sendFile(target, file, {
        signal: controller.signal,
        onProgress: (sent, total) => setPercent(total === 0 ? 100 : Math.round((sent / total) * 100)),
      });
      setName(file.name);
      onChange(uploaded);
    } catch (failure) {
      if (!controller.signal.aborted) setFault(toFault(failure).message);
    } finally {
      sending.current = null;
      setPercent(null);
      onBusy(false);
    }
  };

  const accept = target.contentTypes.includes('*/*') ? {} : { accept: target.contentTypes.join(',') };
  const shown = value === '' ? undefined : (name ?? value);
  return (
    <div>
      <FileInput
        id={id}
        name={field.name}
        label={field.label}
        description={description}
        withAsterisk={field.required === true}
        placeholder={shown ?? 'Choose a file'}
        {...accept}
        value={null}
        disabled={percent !== null || field.refused !== undefined}
        error={fault ?? error}
        onChange={(file) => void choose(file)}
      />
      {percent !== null && (
        <Group gap="sm" mt="xs" wrap="nowrap">
          <Progress value={percent} flex={1} aria-label={`Sending ${field.label}`} />
          <Text size="xs">{`${percent} %`}</Text>
          <Button size="compact-xs" variant="default" onClick={() => sending.current?.abort()}>
            Stop
          </Button>
        </Group>
      )}
      {percent === null && shown !== undefined && (
        <Group gap="sm" mt="xs">
          <Text size="sm">{shown}</Text>
          {field.nullable === true && field.refused === undefined && (
            <Button size="compact-xs" variant="default" aria-label={`Remove ${field.label}`} onClick={() => onChange('')}>
              Remove
            </Button>
          )}
        </Group>
      )}
    </div>
  );
}
