"""What every stage needs: errors, settings, atomic files, the guard, plug-ins, paths."""
