"""Make the groups that are the roles."""

from django.db import migrations

ROLES = ("clinician", "senior clinician", "researcher", "admin")


def seed(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for name in ROLES:
        group.objects.using(schema_editor.connection.alias).get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
