import { Checkbox, NativeSelect, PasswordInput, TagsInput, Textarea, TextInput, type TextInputProps } from '@mantine/core';
import { useId, type ReactNode } from 'react';
import type { AdminField } from '../api/shapes.ts';
import { Prose } from '../values/prose.tsx';
import { FileField } from './file-field.tsx';
import type { InputValue } from './form-values.ts';
import { ReferencePicker } from './reference-picker.tsx';
import { Suggestions } from './suggestions.tsx';

interface FieldProps {
  readonly field: AdminField;
  readonly value: InputValue;
  readonly error: string | undefined;
  readonly onChange: (value: InputValue) => void;
  /** Of a file: what the record's present one is called. */
  readonly title?: string | undefined;
  /** Whether a file is on its way. */
  readonly onBusy?: (busy: boolean) => void;
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** One input, by the kind of its field. */
export function Field({ field, value, error, onChange, title, onBusy = () => {} }: FieldProps) {
  const text = typeof value === 'string' ? value : '';
  const base = {
    id: fieldId(field.name),
    name: field.name,
    label: field.label,
    description: describe(field),
    placeholder: field.placeholder,
    withAsterisk: field.required === true,
    'aria-required': field.required === true ? true : undefined,
    error,
    disabled: field.refused !== undefined,
  } as const;
  const limited = field.maxLength === undefined ? {} : { maxLength: field.maxLength };
  switch (field.kind) {
    case 'bool':
      if (field.nullable === true) {
        const choices = [
          { value: '', label: '–' },
          { value: 'true', label: 'Yes' },
          { value: 'false', label: 'No' },
        ];
        return <NativeSelect {...base} data={choices} value={text} onChange={(event) => onChange(event.currentTarget.value)} />;
      }
      return (
        <Checkbox
          id={fieldId(field.name)}
          name={field.name}
          label={field.label}
          description={describe(field)}
          error={error}
          disabled={field.refused !== undefined}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case 'select': {
      const choices = (field.choices ?? []).map(({ value, label }) => ({ value, label }));
      const empty = field.required === true && text !== '' ? [] : [{ value: '', label: '–' }];
      return (
        <NativeSelect {...base} data={[...empty, ...choices]} value={text} onChange={(event) => onChange(event.currentTarget.value)} />
      );
    }
    case 'strings':
      return (
        <TagsInput
          {...base}
          value={Array.isArray(value) ? [...value] : []}
          data={[...(field.suggestions ?? [])]}
          onChange={onChange}
          acceptValueOnBlur
          splitChars={[',', ' ', '\n']}
          clearable
          comboboxProps={{ withinPortal: true }}
        />
      );
    case 'reference':
      return (
        <ReferencePicker
          {...base}
          resource={field.resource ?? ''}
          value={text}
          isClearable={field.required !== true}
          onChange={(id) => onChange(id)}
        />
      );
    case 'long_text':
      return (
        <Textarea
          {...base}
          {...limited}
          autosize
          minRows={3}
          maxRows={12}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case 'json':
      return (
        <Textarea
          {...base}
          autosize
          minRows={4}
          maxRows={20}
          spellCheck={false}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: '0.8125rem' } }}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case 'file':
      if (field.file === undefined) break;
      return (
        <FileField
          id={fieldId(field.name)}
          field={field}
          target={field.file}
          description={describe(field)}
          value={text}
          title={title}
          error={error}
          onChange={onChange}
          onBusy={onBusy}
        />
      );
    case 'password':
      return (
        <PasswordInput
          {...base}
          autoComplete="new-password"
          visibilityToggleButtonProps={{ 'aria-label': `Show ${field.label}` }}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case 'time':
      return <TextInput {...base} type="datetime-local" step={1} value={text} onChange={(event) => onChange(event.currentTarget.value)} />;
    case 'date':
      return <TextInput {...base} type="date" value={text} onChange={(event) => onChange(event.currentTarget.value)} />;
    case 'number':
      return <TextInput {...base} inputMode="decimal" value={text} onChange={(event) => onChange(event.currentTarget.value)} />;
    default:
  }
  return <SuggestingInput {...base} {...limited} suggestions={field.suggestions ?? []} value={text} onText={onChange} />;
}

interface SuggestingInputProps extends TextInputProps {
  readonly suggestions: readonly string[];
  readonly onText: (text: string) => void;
}

/** A text, with what to offer while it is typed. */
function SuggestingInput({ suggestions, onText, ...input }: SuggestingInputProps) {
  const listId = useId();
  return (
    <>
      <TextInput {...input} list={suggestions.length === 0 ? undefined : listId} onChange={(event) => onText(event.currentTarget.value)} />
      <Suggestions id={listId} values={suggestions} />
    </>
  );
}

/** One form at a time is open, so the name is enough. */
export function fieldId(name: string): string {
  return `field-${name}`;
}

function describe(field: AdminField): ReactNode {
  const parts = [field.refused, field.help, field.kind === 'time' ? `In your time zone, ${zone}.` : undefined].filter(
    (part) => part !== undefined,
  );
  return parts.length === 0 ? undefined : <Prose text={parts.join(' ')} />;
}
