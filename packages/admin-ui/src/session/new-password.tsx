import { PasswordInput } from '@mantine/core';

export function NewPassword({ value, onChange }: { readonly value: string; readonly onChange: (password: string) => void }) {
  return (
    <PasswordInput
      label="New password"
      description="At least 10 characters."
      name="new-password"
      autoComplete="new-password"
      required
      withAsterisk={false}
      visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
