import { TextInput } from '@mantine/core';

/** For a one-time code or a recovery code: not a number field, because recovery codes have letters. */
export function CodeInput({ value, onChange }: { readonly value: string; readonly onChange: (code: string) => void }) {
  return (
    <TextInput
      label="One-time code"
      description="Six digits of your authenticator app, or a recovery code."
      name="code"
      autoComplete="one-time-code"
      autoCapitalize="none"
      spellCheck={false}
      maxLength={40}
      required
      withAsterisk={false}
      data-autofocus
      autoFocus
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
